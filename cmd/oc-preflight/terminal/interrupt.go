package terminal

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// OnInterrupts calls first when ctx ends, which is the first interrupt, and second at the next interrupt,
// until the returned function is called. That returns when no signal is awaited any more.
func OnInterrupts(ctx context.Context, first, second func()) (stop func()) {
	again, stopped := make(chan os.Signal, 1), make(chan struct{})
	var waiting sync.WaitGroup
	waiting.Go(func() {
		select {
		case <-ctx.Done():
		case <-stopped:
			return
		}
		signal.Notify(again, os.Interrupt, syscall.SIGTERM)
		defer signal.Stop(again)
		first()
		select {
		case <-again:
			second()
		case <-stopped:
		}
	})
	return func() {
		close(stopped)
		waiting.Wait()
	}
}
