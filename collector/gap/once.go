package gap

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
	read  Extent
}

// Get returns the result of the first call of read. An error is a result too, unless the
// context of its reader has ended: then the next reader reads. The extent of the first reading
// is recorded for each reader.
func (o *Once[T]) Get(ctx context.Context, read func(context.Context) (T, error)) (T, error) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if o.known {
		Add(ctx, o.read)
		return o.value, o.err
	}
	tracked, log := Track(ctx)
	value, err := read(tracked)
	Add(ctx, log.Extent())
	if err != nil && ctx.Err() != nil {
		return value, err
	}
	o.known, o.value, o.err, o.read = true, value, err, log.Extent()
	return o.value, o.err
}
