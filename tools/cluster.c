/* The ranks a command works on. */
#include "cluster.h"

#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "list.h"

/* Arrays behind the parameters of a topology. */
typedef struct arrays {
    int32_t *rank_slots;
    int32_t *rank_speed;
    uint8_t *rank_alive;
} arrays;

static void release(arrays *self)
{
    free(self->rank_slots);
    free(self->rank_speed);
    free(self->rank_alive);
}

/* A list with one entry per rank. */
static int parse_per_rank(const command *self, const char *option, const char *text, list_rule rule,
                          int32_t ranks, int32_t **values, int32_t *count)
{
    char message[160];
    if (!list_parse(text, rule, values, count, message, sizeof message))
        return complain(self, "--%s is '%s': %s", option, text, message);
    if (ranks > 0 && *count != ranks)
        return complain(self, "--%s has %d entries; expected one for each of the %d ranks", option,
                        (int)*count, (int)ranks);
    return PARSED;
}

/* Slots rank by rank, as the user lists them; they say how many ranks there are. */
static int list_slots(const command *self, const cluster_options *options, eplb_topology_params *params,
                      arrays *held)
{
    int32_t entries = 0;
    int64_t sum = 0;
    int status = parse_per_rank(self, "rank-slots", options->rank_slots,
                                (list_rule){0, EPLB_MAX_SLOTS, EPLB_MAX_RANKS, false},
                                (int32_t)options->ranks, &held->rank_slots, &entries);
    if (status != PARSED)
        return status;
    for (int32_t g = 0; g < entries; g++)
        sum += held->rank_slots[g];
    if (options->slots > 0 && options->slots != sum)
        return complain(self, "--slots is %lld but --rank-slots adds up to %lld", (long long)options->slots,
                        (long long)sum);
    params->num_ranks = entries;
    params->rank_slots = held->rank_slots;
    return PARSED;
}

/* `slots` in all: where they do not divide by the ranks, the first ranks get one more. */
static int spread_slots(const command *self, int64_t slots, eplb_topology_params *params, arrays *held)
{
    int32_t ranks = params->num_ranks;
    params->slots_per_rank = (int32_t)(slots / ranks);
    if (slots % ranks == 0)
        return PARSED;
    held->rank_slots = malloc((size_t)ranks * sizeof *held->rank_slots);
    if (held->rank_slots == NULL)
        return fail_memory(self);
    for (int32_t g = 0; g < ranks; g++)
        held->rank_slots[g] = (int32_t)(slots / ranks + (g < slots % ranks));
    params->rank_slots = held->rank_slots;
    return PARSED;
}

static int read_slots(const command *self, const cluster_options *options, const io_document *base,
                      eplb_topology_params *params, arrays *held)
{
    if (options->rank_slots != NULL)
        return list_slots(self, options, params, held);
    params->num_ranks = (int32_t)options->ranks;
    if (params->num_ranks == 0 && base != NULL)
        params->num_ranks = base->num_ranks;
    int64_t slots = options->slots;
    if (slots == 0 && base != NULL) {
        slots = base->num_slots;
        if (base->rank_slots != NULL && base->num_ranks == params->num_ranks) {
            params->rank_slots = base->rank_slots;
            return PARSED;
        }
    }
    if (params->num_ranks == 0)
        return complain(self, "--ranks is missing; see eplb %s --help", self->name);
    if (slots == 0)
        return complain(self, "--slots is missing; see eplb %s --help", self->name);
    return spread_slots(self, slots, params, held);
}

/* Ranks that the file calls dead stay so as long as they stay. Returns how many. */
static int32_t keep_dead(const io_document *base, int32_t ranks, uint8_t *alive)
{
    int32_t kept = 0;
    for (int32_t g = 0; base != NULL && base->rank_alive != NULL && g < ranks && g < base->num_ranks; g++) {
        alive[g] = base->rank_alive[g];
        kept += !alive[g];
    }
    return kept;
}

/* Sets the ranks of a list dead. */
static int list_dead(const command *self, const char *text, const char *list, int32_t ranks, uint8_t *alive)
{
    int32_t *dead = NULL, count = 0;
    char message[160];
    if (!list_parse(list, (list_rule){0, ranks - 1, EPLB_MAX_RANKS, false}, &dead, &count, message,
                    sizeof message))
        return complain(self, "--dead is '%s': %s", text, message);
    for (int32_t i = 0; i < count; i++)
        alive[dead[i]] = 0;
    free(dead);
    return PARSED;
}

/* LIST adds to the file's dead ranks; none, or none,LIST, takes their place. */
static int read_dead(const command *self, const char *text, const io_document *base,
                     eplb_topology_params *params, arrays *held)
{
    int32_t ranks = params->num_ranks;
    held->rank_alive = malloc((size_t)ranks);
    if (held->rank_alive == NULL)
        return fail_memory(self);
    memset(held->rank_alive, 1, (size_t)ranks);
    params->rank_alive = held->rank_alive;
    if (text != NULL && strcmp(text, "none") == 0)
        return PARSED;
    if (text != NULL && strncmp(text, "none,", 5) == 0)
        return list_dead(self, text, text + 5, ranks, held->rank_alive);
    int32_t kept = keep_dead(base, ranks, held->rank_alive);
    if (text != NULL)
        return list_dead(self, text, text, ranks, held->rank_alive);
    if (kept > 0)
        inform(self, "%d rank%s dead in the current placement and stay%s so; --dead none brings %s back",
               (int)kept, kept == 1 ? " is" : "s are", kept == 1 ? "s" : "", kept == 1 ? "it" : "them");
    return PARSED;
}

static int read_speeds(const command *self, const char *text, eplb_topology_params *params, arrays *held)
{
    int32_t count;
    int status =
        parse_per_rank(self, "rank-speeds", text, (list_rule){1, EPLB_MAX_SPEED, EPLB_MAX_RANKS, true},
                       params->num_ranks, &held->rank_speed, &count);
    params->rank_speed = held->rank_speed;
    return status;
}

/* The file's nodes and speeds are of its own ranks: with fewer or more ranks they mean nothing, and the plan
 * is another one than a user who counts on them expects. */
static void tell_dropped(const command *self, const cluster_options *options, const io_document *base,
                         int32_t ranks)
{
    bool nodes = options->nodes == 0 && base->num_nodes > 1;
    bool speeds = options->rank_speeds == NULL && base->rank_speed != NULL;
    char count[32] = "";
    if (!nodes && !speeds)
        return;
    if (nodes)
        (void)snprintf(count, sizeof count, "%d nodes", (int)base->num_nodes);
    inform(self, "the current placement's %s%s%s are for its %d rank%s and do not hold for %d; pass %s%s%s",
           count, nodes && speeds ? " and " : "", speeds ? "rank speeds" : "", (int)base->num_ranks,
           base->num_ranks == 1 ? "" : "s", (int)ranks, nodes ? "--nodes" : "",
           nodes && speeds ? " and " : "", speeds ? "--rank-speeds" : "");
}

static int read_options(const command *self, const cluster_options *options, const io_document *base,
                        eplb_topology_params *params, arrays *held)
{
    int status = read_slots(self, options, base, params, held);
    if (status != PARSED)
        return status;
    bool same_ranks = base != NULL && base->num_ranks == params->num_ranks;
    if (base != NULL && !same_ranks)
        tell_dropped(self, options, base, params->num_ranks);
    if (options->nodes > 0) {
        params->num_nodes = (int32_t)options->nodes;
    } else if (same_ranks && base->num_nodes > 0) {
        params->num_nodes = base->num_nodes;
        params->rank_node = base->rank_node;
    }
    if (options->dead != NULL || (base != NULL && base->rank_alive != NULL))
        status = read_dead(self, options->dead, base, params, held);
    if (status == PARSED && options->rank_speeds != NULL)
        status = read_speeds(self, options->rank_speeds, params, held);
    else if (same_ranks)
        params->rank_speed = base->rank_speed;
    return status;
}

int cluster_topology(const command *self, const cluster_options *options, const io_document *base,
                     eplb_topology **topology)
{
    eplb_topology_params params;
    arrays held = {NULL, NULL, NULL};
    eplb_error error;
    *topology = NULL;
    eplb_topology_params_init(&params, sizeof params);
    int status = read_options(self, options, base, &params, &held);
    if (status == PARSED && eplb_topology_create(topology, &params, NULL, &error) != EPLB_OK)
        status = fail_library(self, &error);
    release(&held);
    return status;
}
