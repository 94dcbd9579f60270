package record

import (
	"fmt"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// lastWrite is when an object was last written, by the clock of the API server, to the
// second.
func lastWrite(object metav1.Object) time.Time {
	last := object.GetCreationTimestamp().Time
	for _, entry := range object.GetManagedFields() {
		if entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// clock estimates the clock of the API server from its responses.
type clock struct {
	mutex         sync.Mutex
	server, local time.Time
}

// set reads the time, to the second, from the response to a write.
func (c *clock) set(response metav1.Object) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	c.server, c.local = lastWrite(response).UTC(), time.Now()
}

func (c *clock) now() time.Time {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.server.Add(time.Since(c.local))
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func parseTime(text string) (time.Time, error) {
	if text == "" {
		return time.Time{}, nil
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}, fmt.Errorf("could not decode a time: %w", err)
	}
	return t.UTC(), nil
}
