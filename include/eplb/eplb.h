/* Everything: include this one. */
#ifndef EPLB_EPLB_H
#define EPLB_EPLB_H

#include <eplb/deepseek.h>
#include <eplb/frontier.h>
#include <eplb/load.h>
#include <eplb/metrics.h>
#include <eplb/placement.h>
#include <eplb/plan.h>
#include <eplb/realtime.h>
#include <eplb/route.h>
#include <eplb/status.h>
#include <eplb/topology.h>

#endif
