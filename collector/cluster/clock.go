package cluster

import (
	"net/http"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// clock follows the clock of the API server by the Date header of its responses:
// the validity of a verdict must not depend on the clock of a laptop.
type clock struct {
	// fixed is the time of a state that does not change; the zero value is none.
	fixed time.Time

	mutex sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	if !c.fixed.IsZero() {
		return c.fixed
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return time.Now().Add(c.ahead)
}

// wrap makes a transport whose responses set the clock.
func (c *clock) wrap(next http.RoundTripper) http.RoundTripper {
	return timedTransport{clock: c, next: next}
}

type timedTransport struct {
	clock *clock
	next  http.RoundTripper
}

func (t timedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if date, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.set(time.Until(date))
	}
	return response, nil
}

// precision is the difference up to which two clocks count as equal: a Date has
// whole seconds, and the response takes time to arrive.
const precision = 2 * time.Second

func (c *clock) set(ahead time.Duration) {
	if ahead.Abs() < precision {
		ahead = 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.ahead = ahead
}

// LastWrite returns when an object was last written, by the clock of the API server, to the second.
func LastWrite(object metav1.Object) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}
