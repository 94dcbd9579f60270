package kills_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/test/faults"
	"github.com/openshift/update-preflight/test/transport"
)

// errKilled is the error of each request of a run that was killed.
var errKilled = errors.New("the process was killed")

// client sends the requests of a run until that is killed.
type client struct {
	// at is when the run is killed; the zero value is never.
	at faults.Kill
	// killed is done when the run was killed.
	killed context.Context
	kill   context.CancelFunc

	mutex  sync.Mutex
	names  faults.Writes
	writes []string
	wrote  chan struct{} // closed at the next write
}

// connect returns a cluster with the client that sends its requests.
func connect(t *testing.T, at faults.Kill) (*cluster.Cluster, *client) {
	t.Helper()
	c := &client{at: at, names: faults.Writes{}, wrote: make(chan struct{})}
	c.killed, c.kill = context.WithCancel(t.Context())
	t.Cleanup(c.kill)
	config := rest.CopyConfig(local.Config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return transport.Func(func(r *http.Request) (*http.Response, error) { return c.send(r, next) })
	})
	reached, err := cluster.Connect(config, "test")
	if err != nil {
		t.Fatal(err)
	}
	return reached, c
}

// send sends a request, unless the run was killed, or is killed before this one. The requests
// of a killed run are not answered, so that it stops where it is.
func (c *client) send(r *http.Request, next http.RoundTripper) (*http.Response, error) {
	write, killed := c.begin(r)
	if !killed && (write == "" || write != c.at.Write) {
		response, err := next.RoundTrip(r)
		c.end(write)
		return response, err
	}
	if !killed && c.at.Moment == faults.After { // it is served, and the response is not received
		response, err := next.RoundTrip(r.WithContext(context.WithoutCancel(r.Context())))
		if err != nil {
			return nil, err
		}
		_ = response.Body.Close()
	}
	c.kill()
	<-r.Context().Done()
	return nil, errKilled
}

// begin returns the name of a request that is a write, and whether the run was killed before.
func (c *client) begin(r *http.Request) (write string, killed bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.names.Name(r), c.killed.Err() != nil
}

// end notes the end of a request.
func (c *client) end(write string) {
	if write == "" {
		return
	}
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.writes = append(c.writes, write)
	close(c.wrote)
	c.wrote = make(chan struct{})
}

// await returns when these writes were served, or the run was killed.
func (c *client) await(writes ...string) {
	for {
		c.mutex.Lock()
		wrote := c.wrote
		missing := slices.ContainsFunc(writes, func(write string) bool { return !slices.Contains(c.writes, write) })
		c.mutex.Unlock()
		if !missing {
			return
		}
		select {
		case <-wrote:
		case <-c.killed.Done():
			return
		}
	}
}
