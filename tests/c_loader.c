/* What tests/test_c_loader.py runs: include/mxc.h on files that it is told.
 *
 *     c_loader list FILE                          plans, inputs and outputs
 *     c_loader run FILE PLAN THREADS FOLDER N     N runs on FOLDER/INPUT.in; each writes FOLDER/OUTPUT.out, one behind
 *                                                 the other
 *     c_loader together FILE PLAN THREADS FOLDER  the same by several threads at once, which must find the same
 *     c_loader check FILE...                      loads, and opens what runs no code then, and says what is wrong
 */
#define MXC_IMPLEMENTATION
#include "mxc.h"

#define TOGETHER 4
#define RUNS 20

static mxc_model *loaded(const char *path) {
    mxc_error error;
    mxc_model *model = mxc_load(path, &error);
    if (model == NULL) {
        printf("%d %s\n", error.status, error.message);
        exit(1);
    }
    return model;
}

static void describe(const char *kind, const mxc_array *array) {
    int i;
    printf("%s %s %s %d", kind, array->name, array->dtype, array->optional);
    for (i = 0; i < array->ndim; i++) printf(" %lld", (long long)array->shape[i]);
    printf("\n");
}

static void list(const mxc_model *model) {
    int plan, i;
    for (plan = 0; plan < mxc_num_plans(model); plan++) {
        printf("plan %d\n", plan);
        for (i = 0; i < mxc_num_inputs(model); i++) describe("input", mxc_input(model, plan, i));
        for (i = 0; i < mxc_num_outputs(model); i++) describe("output", mxc_output(model, plan, i));
        for (i = 0; i < mxc_num_inputs(model); i++) {
            const mxc_array *array = mxc_input(model, plan, i);
            printf("found %d\n", mxc_find_plan(model, array->name, array->ndim, array->shape));
        }
    }
    printf("nothing %d %d\n", mxc_input(model, plan, 0) != NULL, mxc_output(model, 0, -1) != NULL);
}

static FILE *opened(const char *folder, const char *name, const char *ending, const char *mode) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s.%s", folder, name, ending);
    return fopen(path, mode);
}

static mxc_session *filled(mxc_model *model, int plan, int threads, const char *folder) {
    mxc_error error;
    mxc_session *session = mxc_open(model, plan, threads, &error);
    int i;
    if (session == NULL) {
        printf("%d %s\n", error.status, error.message);
        exit(1);
    }
    for (i = 0; i < mxc_num_inputs(model); i++) {
        const mxc_array *array = mxc_input(model, plan, i);
        FILE *file = opened(folder, array->name, "in", "rb");
        if (file != NULL && fread(mxc_input_data(session, i), 1, array->nbytes, file) != array->nbytes) exit(2);
        if (file != NULL) fclose(file);
    }
    return session;
}

static int run(mxc_model *model, int plan, int threads, const char *folder, int count) {
    mxc_session *session = filled(model, plan, threads, folder);
    mxc_error error;
    int i, failed = 0;
    while (count-- > 0) {
        if (mxc_run(session, &error) != MXC_OK) {
            printf("%d %s\n", error.status, error.message);
            failed = 1;
            break;
        }
        for (i = 0; i < mxc_num_outputs(model); i++) {
            const mxc_array *array = mxc_output(model, plan, i);
            FILE *file = opened(folder, array->name, "out", "ab");
            if (file == NULL || fwrite(mxc_output_data(session, i), 1, array->nbytes, file) != array->nbytes) exit(2);
            fclose(file);
        }
    }
    mxc_close(session);
    return failed;
}

typedef struct {
    mxc_model *model;
    int plan, threads, differences;
    const char *folder;
    char *wanted;
} client;

static void *serve(void *argument) {
    client *own = (client *)argument;
    mxc_session *session = filled(own->model, own->plan, own->threads, own->folder);
    size_t size = mxc_output(own->model, own->plan, 0)->nbytes;
    int i;
    for (i = 0; i < RUNS; i++)
        if (mxc_run(session, NULL) != MXC_OK || memcmp(mxc_output_data(session, 0), own->wanted, size) != 0)
            own->differences++;
    mxc_close(session);
    return NULL;
}

static int together(mxc_model *model, int plan, int threads, const char *folder) {
    mxc_session *session = filled(model, plan, 1, folder);
    client clients[TOGETHER];
    pthread_t ids[TOGETHER];
    size_t size = mxc_output(model, plan, 0)->nbytes;
    int i, differences = 0;
    if (mxc_run(session, NULL) != MXC_OK) return 2;
    for (i = 0; i < TOGETHER; i++) {
        clients[i].model = model, clients[i].plan = plan, clients[i].threads = threads;
        clients[i].folder = folder, clients[i].differences = 0;
        clients[i].wanted = (char *)memcpy(malloc(size), mxc_output_data(session, 0), size);
        if (pthread_create(&ids[i], NULL, serve, &clients[i]) != 0) return 2;
    }
    for (i = 0; i < TOGETHER; i++) {
        pthread_join(ids[i], NULL);
        differences += clients[i].differences;
        free(clients[i].wanted);
    }
    mxc_close(session);
    printf("%d differences\n", differences);
    return differences != 0;
}

/* Whether opening a plan runs code of the file. */
static int prepares(const mxc__plan *plan) {
    int64_t i;
    for (i = 0; i < plan->num_steps; i++)
        if (plan->steps[i].prepares && (plan->steps[i].code != NULL || plan->steps[i].loop != NULL)) return 1;
    return 0;
}

static void check(const char *path) {
    mxc_error error;
    mxc_model *model = mxc_load(path, &error);
    int plan;
    for (plan = 0; model != NULL && plan < mxc_num_plans(model); plan++) {
        mxc_session *session;
        if (prepares(&model->plans[plan])) continue;
        session = mxc_open(model, plan, 1, &error);
        if (session == NULL) break;
        mxc_close(session);
    }
    mxc_free(model);
    printf("%d %s\n", error.status, error.message);
}

int main(int count, char **words) {
    mxc_model *model;
    int code = 0, i;
    if (count < 3) return 2;
    if (strcmp(words[1], "check") == 0) {
        for (i = 2; i < count; i++) check(words[i]);
        return 0;
    }
    model = loaded(words[2]);
    if (strcmp(words[1], "list") == 0) list(model);
    else if (strcmp(words[1], "run") == 0 && count == 7)
        code = run(model, atoi(words[3]), atoi(words[4]), words[5], atoi(words[6]));
    else if (strcmp(words[1], "together") == 0 && count == 6)
        code = together(model, atoi(words[3]), atoi(words[4]), words[5]);
    else code = 2;
    mxc_free(model);
    return code;
}
