/* A chat endpoint that is never what is being measured: one thread, HTTP/1.1 with keep-alive, one fixed answer.
 *
 *   server LATENCY_MS ANSWER_FILE
 *
 * Listens on a free port of 127.0.0.1, prints it, and gives each request the bytes of the file after LATENCY_MS.
 * It ends when its standard input does, which is when its parent has ended, and then prints when it answered each
 * request, in microseconds.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { MAX_CONNECTIONS = 4096, REQUEST = 1 << 16, ANSWER = 1 << 20, WAITING = 1 << 16, TIMES = 1 << 20 };

typedef struct {
    char *received;
    size_t length;
    unsigned use; /* how often this descriptor has been opened: an answer must not reach a later connection */
} Connection;

typedef struct {
    long due; /* microseconds */
    int fd;
    unsigned use;
} Answer;

static Connection connections[MAX_CONNECTIONS];
static Answer waiting[WAITING]; /* a ring; the latency is constant, so answers fall due in order */
static unsigned long first, next;
static long answered[TIMES];
static size_t answers;
static char answer[ANSWER];
static size_t answer_length;

static long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000L + t.tv_nsec / 1000;
}

static void drop(int fd) {
    connections[fd].use++;
    connections[fd].length = 0;
    close(fd);
}

static void send_answer(int fd) {
    size_t sent = 0;
    if (answers < TIMES) answered[answers++] = now();
    while (sent < answer_length) {
        ssize_t n = send(fd, answer + sent, answer_length - sent, MSG_NOSIGNAL);
        if (n > 0) sent += (size_t)n;
        else if (errno != EAGAIN) return;
    }
}

static void send_due(void) {
    long time = now();
    for (; first < next && waiting[first % WAITING].due <= time; first++) {
        Answer *due = &waiting[first % WAITING];
        if (connections[due->fd].use == due->use) send_answer(due->fd);
    }
}

/* The length of the first whole request in the buffer, or 0. */
static size_t request_length(Connection *c) {
    char *end = memmem(c->received, c->length, "\r\n\r\n", 4);
    if (!end) return 0;
    *end = 0;
    char *field = strcasestr(c->received, "\r\ncontent-length:");
    *end = '\r';
    size_t length = (size_t)(end - c->received) + 4 + (field ? strtoul(field + 17, NULL, 10) : 0);
    return length <= c->length ? length : 0;
}

static void receive(int fd, long latency) {
    Connection *c = &connections[fd];
    ssize_t n = recv(fd, c->received + c->length, REQUEST - 1 - c->length, 0);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        drop(fd);
        return;
    }
    c->length += (size_t)n;
    for (size_t length; (length = request_length(c)) > 0;) {
        memmove(c->received, c->received + length, c->length - length);
        c->length -= length;
        if (latency == 0) send_answer(fd);
        else if (next - first < WAITING) waiting[next++ % WAITING] = (Answer){now() + latency, fd, c->use};
    }
    if (c->length == REQUEST - 1) drop(fd); /* longer than we are made for */
}

static void watch(int poll, int fd) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event);
}

static void accept_all(int poll, int listener) {
    int yes = 1;
    for (int fd; (fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0;) {
        if (fd >= MAX_CONNECTIONS) {
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
        if (!connections[fd].received) connections[fd].received = malloc(REQUEST);
        connections[fd].length = 0;
        watch(poll, fd);
    }
}

static int start_listening(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, MAX_CONNECTIONS)) {
        perror("listen");
        exit(1);
    }
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    return listener;
}

static void read_answer(const char *path) {
    static char body[ANSWER / 2];
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        exit(1);
    }
    size_t length = fread(body, 1, sizeof body, file);
    int head = sprintf(answer, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n", length);
    memcpy(answer + head, body, length);
    answer_length = (size_t)head + length;
}

static void print_times(void) {
    for (size_t i = 0; i < answers; i++) printf("%ld\n", answered[i]);
}

int main(int count, char **arguments) {
    if (count != 3) return 2;
    long latency = atol(arguments[1]) * 1000;
    read_answer(arguments[2]);
    int listener = start_listening(), poll = epoll_create1(0);
    watch(poll, listener);
    watch(poll, STDIN_FILENO);
    for (struct epoll_event events[256];;) {
        int n = epoll_wait(poll, events, 256, first == next ? -1 : 1);
        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;
            if (fd == listener) accept_all(poll, listener);
            else if (fd == STDIN_FILENO) {
                print_times();
                return 0;
            }
            else receive(fd, latency);
        }
        send_due();
    }
}
