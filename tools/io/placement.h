/* Placement files: reads and writes a placement, with all a plan says about it, in our formats and the
 * engines'.
 *
 * A document is what a file says, checked for shape and type alone, so that a broken placement can be read
 * and then described by `verify`. The format is told by content. io_document_topology and _placement make the
 * nouns of it. Formats and their keys: docs/formats.md. */
#ifndef IO_PLACEMENT_H
#define IO_PLACEMENT_H

#include <stdbool.h>

#include <eplb/placement.h>
#include <eplb/plan.h>

#include "io/error.h"

typedef enum io_format {
    IO_FORMAT_JSON = 0,   /* our plan document */
    IO_FORMAT_NPZ = 1,    /* our arrays */
    IO_FORMAT_SGLANG = 2, /* --init-expert-location JSON */
    IO_FORMAT_VLLM = 3,   /* the three maps, JSON; .npz when the path ends so */
    IO_FORMAT_ASCEND = 4, /* vllm-ascend's expert_map.json */
    IO_FORMAT_TRTLLM = 5  /* TensorRT-LLM's load balancer YAML */
} io_format;

#define IO_FORMAT_COUNT 6

/* "json", "npz", "sglang", "vllm", "vllm-ascend", "trtllm"; NULL past the end. */
const char *io_format_name(int index);
/* True if the format keeps unequal shares; others lose them (the command should warn). */
bool io_format_keeps_shares(io_format format);

/* One point of a frontier: a plan with at most so many experts received per layer. */
typedef struct io_frontier_point {
    int64_t max_moves; /* per layer */
    int64_t received;  /* over all layers */
    int64_t cross_node;
    double mean, worst; /* imbalance */
} io_frontier_point;

/* How a plan does on each window of its load alone, per layer: arrays [L], NULL where not said. Before is the
 * placement it started from. */
typedef struct io_window_figures {
    int32_t num_windows; /* windows, or sums of neighbouring ones; 0: nothing is said */
    double *mean, *percentile95;
    double *before_imbalance; /* on the sum */
    double *before_mean, *before_percentile95;
} io_window_figures;

/* Arrays are owned by the document; optional ones are NULL where the file does not have them. */
typedef struct io_document {
    io_format format;
    int32_t num_layers;
    int32_t num_experts;
    int32_t num_slots;
    int32_t num_ranks;              /* 0: neither file nor caller says */
    int32_t num_nodes;              /* 0: likewise */
    int32_t num_groups;             /* 0: likewise */
    int32_t *physical_to_logical;   /* [L, S], as written; -1 = empty */
    double *shares;                 /* [L, S] */
    int32_t *rank_slots;            /* [G] */
    int32_t *rank_node;             /* [G] */
    uint8_t *rank_alive;            /* [G] */
    int32_t *rank_speed;            /* [G] */
    int32_t *layer_ids;             /* [L] the engine's layer numbers (TensorRT-LLM), ascending */
    int32_t layer_updates_per_iter; /* TensorRT-LLM */
    eplb_split split;
    char *policy;
    char *reason;
    double *imbalance;         /* [L] */
    double *lower_bound;       /* [L] */
    double *cross_node_tokens; /* [L] tokens that leave the node they start on; NULL: not told */
    double mean, worst;        /* of imbalance, as the file says; NAN: it does not */
    io_window_figures windows;
    bool has_moves;
    eplb_move_count moves; /* slots, received, cross_node, lost */
    int64_t *lost_first;   /* [L + 1] where each layer's experts start in lost_experts; written to our */
    int32_t *lost_experts; /* JSON, not read back; NULL: none is lost */
    int64_t spilled;       /* replicas outside their group's node */
    io_frontier_point *frontier; /* [num_frontier]; written to our JSON, not read back */
    int32_t num_frontier;
    double plan_seconds; /* < 0: unknown */
    bool has_hash;
    uint64_t hash;
} io_document;

/* What the caller knows and the file may not say; 0 means "as the file says". A contradiction is an error. */
typedef struct io_document_options {
    int32_t num_ranks;
    int32_t num_nodes;
    int32_t num_experts; /* default where the file does not say: largest id + 1 */
} io_document_options;

/* Reads a placement file; "-" is standard input, `options` may be NULL. On failure *document is empty. */
eplb_status io_document_read(const char *path, const io_document_options *options, io_document *document,
                             io_error *error);
/* What a plan says, copied. `with_moves`: the plan had a current placement. */
eplb_status io_document_from_plan(const eplb_plan *plan, bool with_moves, io_document *document,
                                  io_error *error);
/* Adds copies of the figures' arrays. Errors: MEMORY. */
eplb_status io_document_take_windows(io_document *document, const io_window_figures *figures,
                                     io_error *error);
/* The nouns. Topology: needs num_ranks (INVALID otherwise, the text says what to pass). */
eplb_status io_document_topology(const io_document *document, const char *path, eplb_topology **topology,
                                 io_error *error);
eplb_status io_document_placement(const io_document *document, const char *path, eplb_placement **placement,
                                  io_error *error);
/* Writes the document; the path is "-" or NULL for standard output. The file is whole or absent. Errors:
 * UNSUPPORTED (the format cannot hold it: empty slots, unequal slots per rank), SYSTEM. first_layer: number
 * of the first MoE layer in TensorRT-LLM's file when the document has no layer_ids. */
eplb_status io_document_write(const io_document *document, io_format format, const char *path,
                              int32_t first_layer, io_error *error);
void io_document_clear(io_document *document);

#endif
