package cluster

import (
	"context"
	"fmt"
	"net/http"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"k8s.io/client-go/rest"
)

const (
	// maxRoom bounds what the responses of all clusters of this process occupy, with everything else that is in
	// memory: about 120 000 pods. Where the address space is limited, it is a quarter of what Go leaves of it: the heap has garbage and
	// gaps, too. Where GOMEMLIMIT is set, it is two thirds of that.
	maxRoom  = 1280 << 20
	reserved = 1300 << 20
	// maxRoomWait bounds the time in which a response waits for room.
	maxRoomWait = 10 * time.Second
	// decoding is the time in which client-go decodes what it has read: the weight of a response counts for that
	// long where nothing states that it is decoded.
	decoding = time.Second
	// collecting is the least time between two collections of garbage.
	collecting = 250 * time.Millisecond
)

// NoRoomError is the error of a request whose response would need more memory than this process may use, given
// what it has read of this and other clusters.
type NoRoomError struct {
	// Host is the address of the API server.
	Host string
}

func (e *NoRoomError) Error() string {
	return fmt.Sprintf("the response of the API server %s needs more memory than is left of %d MiB", e.Host, shared().size>>20)
}

// room is the memory that the responses of all clusters may occupy until they are decoded. Decoded objects are
// part of the heap.
type room struct {
	size int64

	mutex  sync.Mutex
	taken  int64
	claims map[*claim]struct{}

	collection sync.Mutex
	collected  time.Time
}

var shared = sync.OnceValue(func() *room { //nolint:gochecknoglobals // the memory belongs to the whole process
	made := &room{size: min(maxRoom, debug.SetMemoryLimit(-1)/3*2), claims: map[*claim]struct{}{}}
	if limit, ok := addressSpace(); ok {
		made.size = min(made.size, max(limit-reserved, 0)/4)
	}
	debug.SetMemoryLimit(min(debug.SetMemoryLimit(-1), made.size*3/2))
	return made
})

// claim is the room of one response.
type claim struct {
	weight int64
	// reading is where the response is read; nil where that is unknown.
	reading *reading
	// page is the list of which the response is a page.
	page string
	// ended is when the response was read; zero before.
	ended time.Time
	// waited is true where it has waited for room.
	waited bool
}

// reading is a part of the program that reads and decodes responses.
type reading struct{ _ byte } // so that each has an address of its own

type readingKey struct{}

// Reading is a context for requests whose responses are decoded when done is called.
func Reading(ctx context.Context) (_ context.Context, done func()) {
	of := &reading{}
	return context.WithValue(ctx, readingKey{}, of), func() {
		shared().release(func(each *claim) bool { return each.reading == of && !each.ended.IsZero() })
	}
}

// claim begins the response of a request. The page before it of the same list is decoded.
func (r *room) claim(ctx context.Context, page string, continues bool) *claim {
	of, _ := ctx.Value(readingKey{}).(*reading)
	now := time.Now()
	r.release(func(each *claim) bool {
		return each.decoded(now) || continues && each.page == page && !each.ended.IsZero()
	})
	return &claim{reading: of, page: page}
}

func (r *room) release(which func(*claim) bool) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for each := range r.claims {
		if which(each) {
			r.taken -= each.weight
			each.weight = 0
			delete(r.claims, each)
		}
	}
}

// end is called when a response was read, or is not read any further.
func (r *room) end(of *claim) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if of.ended.IsZero() {
		of.ended = time.Now()
	}
}

// set makes the claim as large as the weight. It waits for room, and is false where there is none in time.
func (r *room) set(ctx context.Context, of *claim, weight int64) bool {
	for start := time.Now(); !r.fits(of, weight); {
		of.waited = true
		r.collect()
		if r.fits(of, weight) {
			return true
		}
		timer := time.NewTimer(collecting)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		if waited := time.Since(start); waited > maxRoomWait || waited > 2*decoding && r.only(of) {
			return false
		}
	}
	return true
}

// only is true where no other response is read or decoded, so that waiting is of no use.
func (r *room) only(of *claim) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.taken == of.weight
}

func (r *room) fits(of *claim, weight int64) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if weight > of.weight && heap()+r.taken-of.weight+weight > r.size {
		return false
	}
	r.taken += weight - of.weight
	of.weight = weight
	r.claims[of] = struct{}{}
	return true
}

// decoded reports whether the response was read so long ago that the heap has what was made of it, or did.
func (c *claim) decoded(now time.Time) bool { return !c.ended.IsZero() && now.Sub(c.ended) > decoding }

// collect collects garbage.
func (r *room) collect() {
	r.collection.Lock()
	defer r.collection.Unlock()
	start := time.Now()
	if start.Sub(r.collected) < collecting {
		return
	}
	runtime.GC()
	r.collected = time.Now()
	r.release(func(each *claim) bool { return each.decoded(start) })
}

// heap is the memory of all objects, with the garbage that was not collected yet.
func heap() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64()) //nolint:gosec // the heap is smaller than 2^63 bytes
}

// interruptible makes the HTTP client of a configuration. Its requests end with their
// context: client-go waits for the credential plugin of a kubeconfig whatever the context.
func interruptible(config *rest.Config) (*http.Client, error) {
	made, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client := *made // it can be http.DefaultClient
	if client.Transport == nil {
		client.Transport = http.DefaultTransport //nolint:forbidigo // client-go chose it, for example for http without options
	}
	client.Transport = interruptibleTransport{next: client.Transport}
	return &client, nil
}

type interruptibleTransport struct{ next http.RoundTripper }

// WrappedRoundTripper implements the interface of k8s.io/apimachinery/pkg/util/net, by which
// client-go finds the transport that has the connections.
func (t interruptibleTransport) WrappedRoundTripper() http.RoundTripper { return t.next }

func (t interruptibleTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	type outcome struct {
		response *http.Response
		err      error
	}
	done := make(chan outcome)
	go func() {
		response, err := t.next.RoundTrip(request)
		select {
		case done <- outcome{response, err}:
		case <-request.Context().Done():
			if err == nil {
				_ = response.Body.Close() // nothing reads it
			}
		}
	}()
	slow := time.NewTimer(slowAnswer)
	defer slow.Stop()
	for {
		select {
		case ended := <-done:
			return ended.response, ended.err
		case <-slow.C:
			if notify, ok := request.Context().Value(noticeKey{}).(func(string)); ok {
				notify(fmt.Sprintf("waiting for the API server %s, which has not answered %s %s", request.URL.Host, request.Method, request.URL.Path))
			}
		case <-request.Context().Done():
			return nil, context.Cause(request.Context())
		}
	}
}

// slowAnswer is the time after which a request is said to wait.
const slowAnswer = 10 * time.Second

type noticeKey struct{}

// WithNotice returns a context whose requests call notify, with a sentence about what they wait for, after ten
// seconds without a response.
func WithNotice(ctx context.Context, notify func(string)) context.Context {
	return context.WithValue(ctx, noticeKey{}, notify)
}
