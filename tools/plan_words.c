/* Options of the planner that are words of their own. */
#include "plan_words.h"

#include <stdlib.h>
#include <string.h>

int plan_find_policy(const command *self, const char *name)
{
    const char *names[64];
    char all[512] = "";
    size_t count = 0, used = 0;
    for (; count < 64 && eplb_policy_name((int32_t)count) != NULL; count++) {
        names[count] = eplb_policy_name((int32_t)count);
        if (strcmp(names[count], name) == 0)
            return PARSED;
        if (used < sizeof all)
            used +=
                (size_t)snprintf(all + used, sizeof all - used, "%s%s", count > 0 ? ", " : "", names[count]);
    }
    const char *near = nearest_name(name, names, count);
    if (near != NULL)
        return complain(self, "--policy is '%s'; did you mean '%s'? There are %s", name, near, all);
    return complain(self, "--policy is '%s'; expected one of %s", name, all);
}

eplb_split plan_split_of(const char *policy)
{
    if (strcmp(policy, "weighted") == 0)
        return EPLB_SPLIT_WEIGHTED;
    return strcmp(policy, "batch") == 0 ? EPLB_SPLIT_BATCH : EPLB_SPLIT_EQUAL;
}

int plan_parse_max_moves(const command *self, const char *text, eplb_plan_params *params)
{
    const char *number = strncmp(text, "total:", 6) == 0 ? text + 6 : text;
    char *end;
    long long value = strtoll(number, &end, 10);
    if (end == number || *end != '\0' || value < 0 || value > (long long)1 << 40)
        return complain(self, "--max-moves is '%s'; expected a whole number of at least 0, or total: and one",
                        text);
    if (number == text)
        params->max_moves_per_layer = value;
    else
        params->max_moves = value;
    return PARSED;
}

/* One term of a cost, "tokens" or "tokens=3", up to a comma; steps over it. Each is given once: `seen` has a
 * bit for each. */
static bool parse_cost_term(const char **text, eplb_cost *cost, unsigned *seen)
{
    static const char *const names[] = {"tokens", "tiles", "activated"};
    int32_t *const fields[] = {&cost->tokens, &cost->tiles, &cost->activated};
    size_t length = strcspn(*text, "=,"), i = 0;
    while (i < 3 && (strlen(names[i]) != length || strncmp(*text, names[i], length) != 0))
        i++;
    *text += length;
    long weight = 1;
    if (**text == '=') {
        char *end;
        weight = strtol(*text + 1, &end, 10);
        if (end == *text + 1)
            return false;
        *text = end;
    }
    if (i == 3 || weight < 0 || weight > 1000000000 || (*seen & 1u << i) != 0)
        return false;
    *seen |= 1u << i;
    *fields[i] = (int32_t)weight;
    return true;
}

int plan_parse_cost(const command *self, const char *text, eplb_cost *cost)
{
    const char *rest = text;
    unsigned seen = 0;
    cost->tokens = 0;
    bool good;
    while ((good = parse_cost_term(&rest, cost, &seen)) && *rest == ',')
        rest++;
    if (!good || *rest != '\0')
        return complain(self,
                        "--cost is '%s'; expected tokens, tiles, activated, or weights such as "
                        "tokens=1,tiles=2,activated=300, each once",
                        text);
    if (cost->tokens == 0 && cost->tiles == 0 && cost->activated == 0)
        return complain(self, "--cost is '%s'; expected at least one weight above 0", text);
    return PARSED;
}
