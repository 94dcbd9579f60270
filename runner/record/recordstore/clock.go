package recordstore

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/collector/cluster"
)

// Clock estimates the clock of the API server from its responses.
type Clock struct {
	mutex         sync.Mutex
	server, local time.Time
}

// set reads the time, to the second, from the response to a write.
func (c *Clock) set(response metav1.Object) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.server, c.local = cluster.LastWrite(response).UTC(), time.Now()
}

// Now returns the time by the clock of the API server, to about a second.
func (c *Clock) Now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.server.Add(time.Since(c.local))
}
