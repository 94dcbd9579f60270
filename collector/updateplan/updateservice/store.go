package updateservice

import "time"

// Key identifies a graph that is stored.
type Key struct {
	// URL locates the service, without the parameters of a request.
	URL                   string
	Channel, Architecture string
}

// Store stores the graphs of update services.
type Store interface {
	// Put stores a graph that was received at that time.
	Put(key Key, received time.Time, content []byte) error
	// Get returns a stored graph, and when it was received; false if none is stored.
	Get(key Key) (content []byte, received time.Time, ok bool)
}
