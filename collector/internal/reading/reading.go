// Package reading answers: what did the first of several readers read?
package reading

import (
	"context"
	"sync"
)

// Once is the result of reading one thing once, for several readers. The zero value is
// ready to use, by several goroutines at a time.
type Once[T any] struct {
	mutex sync.Mutex
	known bool
	value T
	err   error
}

// Get returns the result of the first call of read. An error is a result too, unless the
// context of its reader has ended: then the next reader reads.
func (o *Once[T]) Get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.known {
		return o.value, o.err
	}
	value, err := read(ctx)
	if err != nil && ctx.Err() != nil {
		return value, err
	}
	o.known, o.value, o.err = true, value, err
	return o.value, o.err
}
