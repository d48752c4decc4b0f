/* Token routing: streams integer [N, L, K] (or [N, K], one layer) logical expert ids from .npy or .npz.
 *
 * In an .npz the array is `topk`; num_experts and num_groups are read when they are there.
 * Id -1 is a padded choice and stays -1; every other id must be 0 .. E-1. */
#ifndef IO_TOPK_H
#define IO_TOPK_H

#include "io/error.h"

typedef struct io_topk io_topk;

/* Opens `path` ("-" is standard input). num_experts 0: as the file says; INVALID where neither says. */
eplb_status io_topk_open(io_topk **topk, const char *path, int32_t num_experts, io_error *error);
/* The same where something else is known to be for `fallback` experts: used if neither says. */
eplb_status io_topk_open_else(io_topk **topk, const char *path, int32_t num_experts, int32_t fallback,
                              io_error *error);
void io_topk_close(io_topk *topk);

int64_t io_topk_num_tokens(const io_topk *topk);  /* N */
int32_t io_topk_num_layers(const io_topk *topk);  /* L */
int32_t io_topk_width(const io_topk *topk);       /* K */
int32_t io_topk_num_experts(const io_topk *topk); /* E */
int32_t io_topk_num_groups(const io_topk *topk);  /* 0: the file does not say */
const char *io_topk_name(const io_topk *topk);    /* for messages; lives as long as it */

/* Reads the next tokens, at most max_tokens, into ids [*num_read, L, K]; *num_read is 0 at the end. */
eplb_status io_topk_read(io_topk *topk, int64_t max_tokens, int32_t *ids, int64_t *num_read, io_error *error);

#endif
