package terminal

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// OnInterrupts calls first when ctx ends, which is the first interrupt, and second at the next interrupt,
// until the returned function is called.
func OnInterrupts(ctx context.Context, first, second func()) (stop func()) {
	again := make(chan os.Signal, 1)
	stopWaiting := context.AfterFunc(ctx, func() {
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		first()
		if _, ok := <-again; ok {
			second()
		}
	})
	return func() {
		stopWaiting()
		signal.Stop(again)
		close(again)
	}
}
