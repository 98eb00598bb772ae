/*
 * Sessions of ZooKeeper's C client that carry out orders.
 *
 * The process prints `ready`. Each line of its input is an order, `NUMBER NAME VERB ARGUMENTS`, separated by single
 * spaces. When the order is done, the process answers `NUMBER ok VALUES`, `NUMBER no`, or `NUMBER error WHAT`. For a
 * ZooKeeper error, WHAT is its name in lower case. The verb `make session CONNECT-STRING TIMEOUT-MS` opens a session.
 * Orders are carried out one after the other, even those of different sessions. The process exits when its input
 * ends.
 */
#define THREADED
#define _GNU_SOURCE
#include <zookeeper/zookeeper.h>

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 16, SESSIONS = 16, LONGEST_DATA = 2 << 20 };

/* A queue of texts for which another thread waits. */
struct queue {
    pthread_mutex_t lock;
    pthread_cond_t more;
    char *texts[256];
    int first, last;
};

struct session {
    zhandle_t *client;
    struct queue events, states;
};

static struct session sessions[SESSIONS];
static char data[LONGEST_DATA];
static const char LETTERS[] = "rwcda";

static void put(struct queue *queue, const char *format, ...) {
    char *text;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0) abort();
    va_end(values);
    pthread_mutex_lock(&queue->lock);
    queue->texts[queue->last++ % 256] = text;
    pthread_cond_signal(&queue->more);
    pthread_mutex_unlock(&queue->lock);
}

static char *take(struct queue *queue) {
    pthread_mutex_lock(&queue->lock);
    while (queue->first == queue->last) pthread_cond_wait(&queue->more, &queue->lock);
    char *text = queue->texts[queue->first++ % 256];
    pthread_mutex_unlock(&queue->lock);
    return text;
}

static const char *named(int code) {
    switch (code) {
    case ZOK: return "rolledback";
    case ZRUNTIMEINCONSISTENCY: return "runtimeinconsistency";
    case ZCONNECTIONLOSS: return "connectionloss";
    case ZUNIMPLEMENTED: return "unimplemented";
    case ZBADARGUMENTS: return "badarguments";
    case ZNONODE: return "nonode";
    case ZNOAUTH: return "noauth";
    case ZBADVERSION: return "badversion";
    case ZNOCHILDRENFOREPHEMERALS: return "nochildrenforephemerals";
    case ZNODEEXISTS: return "nodeexists";
    case ZNOTEMPTY: return "notempty";
    case ZSESSIONEXPIRED: return "sessionexpired";
    case ZINVALIDACL: return "invalidacl";
    case ZAUTHFAILED: return "authfailed";
    case ZNOWATCHER: return "nowatcher";
    default: return zerror(code);
    }
}

/* Callback for a session's changes of state. */
static void state_changed(zhandle_t *client, int type, int state, const char *path, void *context) {
    (void)client, (void)path;
    struct session *session = context;
    if (type != ZOO_SESSION_EVENT) return;
    if (state == ZOO_CONNECTED_STATE) put(&session->states, "connected");
    else if (state == ZOO_EXPIRED_SESSION_STATE) put(&session->states, "expired");
    else if (state == ZOO_AUTH_FAILED_STATE) put(&session->states, "authfailed");
    else put(&session->states, "suspended");
}

static void fired(zhandle_t *client, int type, int state, const char *path, void *context) {
    (void)client, (void)state;
    struct session *session = context;
    if (type == ZOO_CREATED_EVENT) put(&session->events, "created:%s", path);
    if (type == ZOO_DELETED_EVENT) put(&session->events, "deleted:%s", path);
    if (type == ZOO_CHANGED_EVENT) put(&session->events, "changed:%s", path);
    if (type == ZOO_CHILD_EVENT) put(&session->events, "child:%s", path);
}

static void until(struct session *session, const char *wanted) {
    for (;;) {
        char *state = take(&session->states);
        int found = !strcmp(state, wanted);
        free(state);
        if (found) return;
    }
}

static int open_session(struct session *session, const char *connect_string, int timeout) {
    pthread_mutex_init(&session->events.lock, NULL);
    pthread_cond_init(&session->events.more, NULL);
    pthread_mutex_init(&session->states.lock, NULL);
    pthread_cond_init(&session->states.more, NULL);
    session->client = zookeeper_init(connect_string, state_changed, timeout, NULL, session, 0);
    if (!session->client) return ZSYSTEMERROR;
    until(session, "connected");
    return ZOK;
}

static int mode_of(const char *name) {
    if (!strcmp(name, "ephemeral")) return ZOO_EPHEMERAL;
    if (!strcmp(name, "sequential")) return ZOO_PERSISTENT_SEQUENTIAL;
    if (!strcmp(name, "ephemeral-sequential")) return ZOO_EPHEMERAL_SEQUENTIAL;
    return !strcmp(name, "container") ? ZOO_CONTAINER : ZOO_PERSISTENT;
}

static int by_name(const void *left, const void *right) {
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Callbacks of asynchronous requests. `context` is a queue. */
static void string_done(int code, const char *value, const void *context) {
    (void)value;
    put((struct queue *)context, "%d", code);
}

static void void_done(int code, const void *context) {
    put((struct queue *)context, "%d", code);
}

static int answer_of(struct queue *done) {
    char *text = take(done);
    int code = atoi(text);
    free(text);
    return code;
}

/* Creates this number of children, with many requests in flight at the same time. */
static int fill(zhandle_t *client, const char *path, int count) {
    struct queue done = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};
    char child[256];
    int failed = ZOK, sent = 0, answered = 0;
    while (answered < count) {
        while (sent < count && sent - answered < 200) {
            snprintf(child, sizeof child, "%s/child-%05d", path, sent++);
            zoo_acreate(client, child, "", 0, &ZOO_OPEN_ACL_UNSAFE, 0, string_done, &done);
        }
        int code = answer_of(&done);
        if (code) failed = code;
        answered++;
    }
    return failed;
}

static int watch(struct session *session, const char *kind, const char *path) {
    struct Stat stat;
    struct String_vector names = {0};
    int length = sizeof data;
    if (!strcmp(kind, "data")) return zoo_wget(session->client, path, fired, session, data, &length, &stat);
    if (!strcmp(kind, "children")) {
        int code = zoo_wget_children(session->client, path, fired, session, &names);
        deallocate_String_vector(&names);
        return code;
    }
    int code = zoo_wexists(session->client, path, fired, session, &stat);
    return code == ZNONODE ? ZOK : code;
}

static int unwatch(struct session *session, const char *kind, const char *path) {
    ZooWatcherType type = !strcmp(kind, "children") ? ZWATCHTYPE_CHILD : ZWATCHTYPE_DATA;
    return zoo_remove_watches(session->client, path, type, fired, session, 0);
}

/* Splits an operation of a multi, `VERB:PATH:…`, into its parts. */
static int parts(char *order, char **into) {
    int count = 0;
    for (char *part; (part = strsep(&order, ":")) && count < 4;) into[count++] = part;
    return count;
}

static void multi(zhandle_t *client, char **orders, int count, FILE *answer) {
    zoo_op_t ops[WORDS];
    zoo_op_result_t results[WORDS];
    struct Stat stats[WORDS];
    char paths[WORDS][256];
    char *words[WORDS][4];
    for (int at = 0; at < count; at++) {
        char **word = words[at];
        parts(orders[at], word);
        if (!strcmp(word[0], "create"))
            zoo_create_op_init(&ops[at], word[1], word[2], strlen(word[2]), &ZOO_OPEN_ACL_UNSAFE, 0, paths[at], sizeof paths[at]);
        else if (!strcmp(word[0], "set"))
            zoo_set_op_init(&ops[at], word[1], word[2], strlen(word[2]), atoi(word[3]), &stats[at]);
        else if (!strcmp(word[0], "delete"))
            zoo_delete_op_init(&ops[at], word[1], atoi(word[2]));
        else
            zoo_check_op_init(&ops[at], word[1], atoi(word[2]));
    }
    int failed = zoo_multi(client, count, ops, results);
    fputs(" ok", answer);
    for (int at = 0; at < count; at++) {
        if (failed) fprintf(answer, " %s", named(results[at].err));
        else if (!strcmp(words[at][0], "create")) fprintf(answer, " created=%s", paths[at]);
        else if (!strcmp(words[at][0], "set")) fprintf(answer, " set=%d", stats[at].version);
        else fprintf(answer, " %s", words[at][0]);
    }
}

static int auth(zhandle_t *client, const char *scheme, const char *secret) {
    struct queue done = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};
    int code = zoo_add_auth(client, scheme, secret, strlen(secret), void_done, &done);
    return code ? code : answer_of(&done);
}

static int show_acl(zhandle_t *client, const char *path, FILE *answer) {
    struct ACL_vector acl = {0};
    struct Stat stat;
    int code = zoo_get_acl(client, path, &acl, &stat);
    if (code) return code;
    fputs(" ok ", answer);
    for (int at = 0; at < acl.count; at++) {
        if (at) fputc(' ', answer);
        for (int bit = 0; LETTERS[bit]; bit++)
            if (acl.data[at].perms & 1 << bit) fputc(LETTERS[bit], answer);
        fprintf(answer, ":%s:%s", acl.data[at].id.scheme, acl.data[at].id.id);
    }
    deallocate_ACL_vector(&acl);
    return ZOK;
}

static int set_acl(zhandle_t *client, char **words) {
    struct ACL entry = {0, {words[2], words[3]}};
    for (const char *letter = words[1]; *letter; letter++) entry.perms |= 1 << (strchr(LETTERS, *letter) - LETTERS);
    struct ACL_vector acl = {1, &entry};
    return zoo_set_acl(client, words[0], -1, &acl);
}

static int show_children(zhandle_t *client, const char *path, FILE *answer) {
    struct String_vector names = {0};
    int code = zoo_get_children(client, path, 0, &names);
    if (code) return code;
    qsort(names.data, names.count, sizeof *names.data, by_name);
    fputs(" ok", answer);
    for (int at = 0; at < names.count; at++) fprintf(answer, " %s", names.data[at]);
    deallocate_String_vector(&names);
    return ZOK;
}

/* Carries out one order. Writes its answer, or returns an error. Without either, the answer is a plain `ok`. */
static int tell(struct session *session, const char *verb, char **words, int count, FILE *answer) {
    zhandle_t *client = session->client;
    struct Stat stat;
    char path[1024];
    int code;
    if (!strcmp(verb, "make")) return open_session(session, words[1], atoi(words[2]));
    if (!strcmp(verb, "id")) return fprintf(answer, " ok %lld", (long long)zoo_client_id(client)->client_id), ZOK;
    if (!strcmp(verb, "create") || !strcmp(verb, "create-mine")) {
        int mine = !strcmp(verb, "create-mine");
        if (!mine) words++;
        struct ACL_vector *acl = mine ? &ZOO_CREATOR_ALL_ACL : &ZOO_OPEN_ACL_UNSAFE;
        code = zoo_create(client, words[0], words[1], strlen(words[1]), acl, mine ? 0 : mode_of(words[-1]), path, sizeof path);
        if (!code) fprintf(answer, " ok %s", path);
        return code;
    }
    if (!strcmp(verb, "get") || !strcmp(verb, "length")) {
        int length = sizeof data;
        code = zoo_get(client, words[0], 0, data, &length, &stat);
        // The client returns -1 for a node without data.
        if (length < 0) length = 0;
        if (!code && !strcmp(verb, "length")) fprintf(answer, " ok %d", length);
        else if (!code) fprintf(answer, " ok %.*s %d", length, data, stat.version);
        return code;
    }
    if (!strcmp(verb, "exists")) {
        code = zoo_exists(client, words[0], 0, &stat);
        if (code != ZNONODE) return code;
        return fputs(" no", answer), ZOK;
    }
    if (!strcmp(verb, "set")) {
        code = zoo_set2(client, words[0], words[1], strlen(words[1]), atoi(words[2]), &stat);
        if (!code) fprintf(answer, " ok %d", stat.version);
        return code;
    }
    if (!strcmp(verb, "delete")) return zoo_delete(client, words[0], atoi(words[1]));
    if (!strcmp(verb, "children")) return show_children(client, words[0], answer);
    if (!strcmp(verb, "fill")) return fill(client, words[0], atoi(words[1]));
    if (!strcmp(verb, "watch")) return watch(session, words[0], words[1]);
    if (!strcmp(verb, "unwatch")) return unwatch(session, words[0], words[1]);
    if (!strcmp(verb, "event")) {
        char *event = take(&session->events);
        fprintf(answer, " ok %s", event);
        return free(event), ZOK;
    }
    if (!strcmp(verb, "multi")) return multi(client, words, count, answer), ZOK;
    if (!strcmp(verb, "auth")) return auth(client, words[0], words[1]);
    if (!strcmp(verb, "acl")) return show_acl(client, words[0], answer);
    if (!strcmp(verb, "set-acl")) return set_acl(client, words);
    if (!strcmp(verb, "sync")) {
        struct queue done = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, {0}, 0, 0};
        code = zoo_async(client, "/", string_done, &done);
        return code ? code : answer_of(&done);
    }
    if (!strcmp(verb, "until")) return until(session, words[0]), ZOK;
    if (!strcmp(verb, "close")) return zookeeper_close(client);
    fputs(" error it does not know how", answer);
    return ZOK;
}

int main(void) {
    char *line = NULL;
    size_t room = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    zoo_set_debug_level(0);
    puts("ready");
    while (getline(&line, &room, stdin) > 0) {
        char *rest = line, *words[WORDS + 4];
        int count = 0;
        line[strcspn(line, "\n")] = 0;
        for (char *word; count < WORDS + 4 && (word = strsep(&rest, " "));) words[count++] = word;
        char *text = NULL;
        size_t length = 0;
        FILE *answer = open_memstream(&text, &length);
        int code = tell(&sessions[atoi(words[1]) % SESSIONS], words[2], words + 3, count - 3, answer);
        fclose(answer);
        if (code) printf("%s error %s\n", words[0], named(code));
        else printf("%s%s\n", words[0], length ? text : " ok");
        free(text);
    }
    return 0;
}
