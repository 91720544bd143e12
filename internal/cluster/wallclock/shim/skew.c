/*
 * The wall clock of one server: true time plus an offset and a drift, both read from a page of memory that the harness
 * writes. CLOCK_MONOTONIC and timers are not changed: a server whose event loop is stopped would not show the fault.
 * Until the library is initialized, time is read by system call, because jemalloc reads it before dlsym can be called;
 * after that by the C library's function, which needs no system call (vDSO).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

struct slot {
	int64_t base, offset, drift; /* true time when it was set, ns ahead of true time, ns gained per second since */
};
struct page {
	int64_t which; /* the current slot; the harness writes the other one, then this */
	struct slot slot[2];
};
static struct page true_time;
static volatile struct page *page = &true_time;
static int (*next)(clockid_t, struct timespec *); /* 0: not initialized */

__attribute__((constructor)) static void open_page(void) {
	const char *path = getenv("LOCKCHAOS_CLOCK");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd < 0)
		return;
	void *m = mmap(0, sizeof(struct page), PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (m != MAP_FAILED)
		page = m;
	next = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
}

int clock_gettime(clockid_t clock, struct timespec *t) {
	int r = next ? next(clock, t) : (int)syscall(SYS_clock_gettime, clock, t);
	if (r != 0 || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE))
		return r;
	volatile struct slot *s = &page->slot[page->which & 1];
	int64_t now = (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
	now += s->offset + (int64_t)((double)(now - s->base) * s->drift / 1e9);
	t->tv_sec = now / 1000000000;
	t->tv_nsec = now % 1000000000;
	return 0;
}

int gettimeofday(struct timeval *restrict tv, void *restrict tz) {
	struct timespec t;
	(void)tz;
	clock_gettime(CLOCK_REALTIME, &t);
	tv->tv_sec = t.tv_sec;
	tv->tv_usec = t.tv_nsec / 1000;
	return 0;
}

time_t time(time_t *p) {
	struct timespec t;
	clock_gettime(CLOCK_REALTIME, &t);
	if (p)
		*p = t.tv_sec;
	return t.tv_sec;
}
