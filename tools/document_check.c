/* Checks of a placement file: slots by the library, and by the rules of docs/formats.md what it does not see,
 * shares, groups, metrics and hash. Metrics are held against each other alone: the load they are of is not in
 * the file. */
#include "document_check.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#include <eplb/placement.h>
#include <eplb/plan.h>

#include "failure.h"
#include "published.h"

#define ROUNDING 1e-9

typedef struct checker {
    const io_document *file;
    document_finding found;
    void *context;
    document_notes *notes;
    bool published; /* a plan of a published planner, which may put an expert twice on a rank */
    size_t count;
} checker;

static void __attribute__((__format__(__printf__, 4, 5)))
find(checker *self, int32_t layer, const char *what, const char *format, ...)
{
    char where[160];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(where, sizeof where, format, arguments);
    va_end(arguments);
    self->count++;
    self->found(self->context, layer, what, where);
}

static bool take_problem(void *context, const eplb_problem *problem)
{
    checker *self = context;
    char where[120] = "";
    size_t used = 0;
    if (problem->kind == EPLB_PROBLEM_EMPTY_SLOT) {
        self->notes->empty_slots++;
        return true;
    }
    if (problem->kind == EPLB_PROBLEM_DUPLICATE && self->published) {
        self->notes->published_doubles++;
        return true;
    }
    const struct {
        const char *name;
        int32_t value;
    } places[] = {{"expert", problem->expert}, {"rank", problem->rank}, {"slot", problem->slot}};
    for (size_t i = 0; i < 3; i++)
        if (places[i].value >= 0 || (i == 0 && problem->kind == EPLB_PROBLEM_EXPERT_RANGE))
            used += (size_t)snprintf(where + used, sizeof where - used, "%s%s %d", used > 0 ? ", " : "",
                                     places[i].name, (int)places[i].value);
    find(self, problem->layer, eplb_problem_name(problem->kind), "%s", where);
    return true;
}

/* Shares lie in [0, 1], are 0 where nothing is, and add up to 1 over an expert's replicas. */
static void check_shares(checker *self, int32_t layer, double *sum)
{
    const io_document *file = self->file;
    size_t offset = (size_t)layer * (size_t)file->num_slots;
    const int32_t *row = file->physical_to_logical + offset;
    const double *shares = file->shares + offset;
    for (int32_t e = 0; e < file->num_experts; e++)
        sum[e] = -1.0; /* no replica seen */
    for (int32_t p = 0; p < file->num_slots; p++) {
        bool empty = row[p] < 0 || row[p] >= file->num_experts;
        if (!(shares[p] >= 0.0 && shares[p] <= 1.0) || (empty && shares[p] != 0.0))
            find(self, layer, "share-range", "slot %d has the share %.9g; expected %s", (int)p, shares[p],
                 empty ? "0 in an empty slot" : "0 to 1");
        if (!empty)
            sum[row[p]] = (sum[row[p]] < 0.0 ? 0.0 : sum[row[p]]) + shares[p];
    }
    for (int32_t e = 0; e < file->num_experts; e++)
        if (sum[e] >= 0.0 && !(fabs(sum[e] - 1.0) <= ROUNDING))
            find(self, layer, "share-sum", "the shares of expert %d add up to %.12g; expected 1", (int)e,
                 sum[e]);
}

static void check_groups(checker *self)
{
    const io_document *file = self->file;
    if (file->num_groups > 1 && file->num_experts % file->num_groups != 0)
        find(self, -1, "groups", "%d experts do not divide into %d groups", (int)file->num_experts,
             (int)file->num_groups);
}

/* Imbalances are 1 at least. */
static void check_row(checker *self, const char *name, const double *row)
{
    for (int32_t l = 0; row != NULL && l < self->file->num_layers; l++)
        if (!(row[l] >= 1.0 - ROUNDING))
            find(self, l, "metrics", "%s is %.9g; expected 1 or more", name, row[l]);
}

/* The certificate: nothing beats what is proved to be unbeatable. */
static void check_bound(checker *self)
{
    const io_document *file = self->file;
    check_row(self, "lower_bound", file->lower_bound);
    for (int32_t l = 0; file->lower_bound != NULL && file->imbalance != NULL && l < file->num_layers; l++)
        if (file->lower_bound[l] > file->imbalance[l] * (1.0 + ROUNDING))
            find(self, l, "metrics", "lower_bound is %.9g, above the imbalance, %.9g", file->lower_bound[l],
                 file->imbalance[l]);
}

static void check_told(checker *self, const char *name, double told, double is)
{
    if (!isnan(told) && !(fabs(told - is) <= ROUNDING * is))
        find(self, -1, "metrics", "%s is %.9g; that of imbalance is %.9g", name, told, is);
}

static void check_metrics(checker *self)
{
    const io_document *file = self->file;
    double sum = 0.0, worst = 0.0;
    check_row(self, "imbalance", file->imbalance);
    check_bound(self);
    check_row(self, "window_mean", file->windows.mean);
    check_row(self, "window_p95", file->windows.percentile95);
    check_row(self, "before.imbalance", file->windows.before_imbalance);
    check_row(self, "before.window_mean", file->windows.before_mean);
    check_row(self, "before.window_p95", file->windows.before_percentile95);
    if (file->imbalance == NULL)
        return;
    for (int32_t l = 0; l < file->num_layers; l++) {
        sum += file->imbalance[l];
        worst = file->imbalance[l] > worst ? file->imbalance[l] : worst;
    }
    check_told(self, "mean", file->mean, sum / file->num_layers);
    check_told(self, "worst", file->worst, worst);
}

bool document_hash_agrees(const io_document *document, const eplb_topology *topology, uint64_t *hash)
{
    *hash = 0;
    if (document->split != EPLB_SPLIT_EQUAL && document->shares == NULL)
        return true;
    *hash = eplb_plan_hash_of(topology, document->num_layers, document->num_experts, document->split,
                              document->physical_to_logical, document->shares);
    return !document->has_hash || *hash == document->hash;
}

static void check_hash(checker *self, const eplb_topology *topology)
{
    uint64_t hash;
    if (!document_hash_agrees(self->file, topology, &hash))
        find(self, -1, "hash", "the file says %016" PRIx64 ", its content has %016" PRIx64, self->file->hash,
             hash);
}

int document_check(const command *self, const io_document *document, const eplb_topology *topology,
                   document_finding found, void *context, document_notes *notes)
{
    checker check = {document, found, context, notes, is_published(document->policy), 0};
    eplb_error error;
    eplb_status status =
        eplb_placement_check(topology, document->num_layers, document->num_experts,
                             document->physical_to_logical, take_problem, &check, NULL, &error);
    if (status != EPLB_OK && status != EPLB_ERROR_INVALID)
        return fail_library(self, &error);
    if (status == EPLB_ERROR_INVALID && check.count == 0 &&
        notes->published_doubles == 0) /* refused unseen */
        find(&check, error.layer, "invalid", "%s", error.text);
    if (document->shares != NULL) {
        double *sum = malloc((size_t)document->num_experts * sizeof *sum);
        if (sum == NULL)
            return fail_memory(self);
        for (int32_t l = 0; l < document->num_layers; l++)
            check_shares(&check, l, sum);
        free(sum);
    }
    check_groups(&check);
    check_metrics(&check);
    check_hash(&check, topology);
    return PARSED;
}

void document_warn_notes(const command *self, const document_notes *notes)
{
    if (notes->empty_slots > 0)
        warn(self, "empty slots on live ranks: %zu, legal but wasted", notes->empty_slots);
    if (notes->published_doubles > 0)
        warn(self, "slots that hold an expert their rank holds already: %zu, as the published planner allows",
             notes->published_doubles);
}

void document_warn_hash(const command *self, const io_document *document, const char *path)
{
    eplb_topology *topology;
    io_error ignored; /* who needs the ranks tells why there are none */
    uint64_t hash;
    if (!document->has_hash || io_document_topology(document, path, &topology, &ignored) != EPLB_OK)
        return;
    if (!document_hash_agrees(document, topology, &hash))
        warn(self,
             "%s: its hash is %016" PRIx64 ", but its content has %016" PRIx64
             ": changed after it was planned; eplb verify tells more",
             path, document->hash, hash);
    eplb_topology_destroy(topology);
}
