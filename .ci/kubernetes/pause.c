// What holds a pod's network while its containers come and go: it waits until it is told to end.
#include <signal.h>
#include <unistd.h>

int main(void) {
    sigset_t ends;
    int which;
    sigemptyset(&ends);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGINT);
    sigprocmask(SIG_BLOCK, &ends, 0);
    return sigwait(&ends, &which);
}
