package command

import (
	"net/http"
	"sync"
	"time"
)

// clock is that of the API server, as far as its answers tell: whether a verdict
// still holds is not judged by the clock of a laptop.
type clock struct {
	mutex sync.Mutex
	ahead time.Duration
}

// now is the time there; as long as there was no answer, the time here.
func (c *clock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return time.Now().Add(c.ahead)
}

// wrap has the clock read the answers that come by.
func (c *clock) wrap(next http.RoundTripper) http.RoundTripper { return timed{clock: c, next: next} }

type timed struct {
	clock *clock
	next  http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t timed) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return response, err
	}
	if theirs, err := http.ParseTime(response.Header.Get("Date")); err == nil {
		t.clock.set(time.Until(theirs))
	}
	return response, nil
}

// exact is how far apart two clocks are that agree, as far as can be told: a date
// has whole seconds, and takes its time to get here.
const exact = 2 * time.Second

func (c *clock) set(ahead time.Duration) {
	if ahead.Abs() < exact {
		ahead = 0
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.ahead = ahead
}
