package recordstore

import (
	"sync"

	"github.com/openshift/update-preflight/runner/record"
)

// Queue has the results that are not written yet.
type Queue struct {
	mutex   sync.Mutex
	results []record.Result
}

// Add adds a result, which is written with the next ones.
func (q *Queue) Add(result record.Result) {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	q.results = append(q.results, result)
}

func (q *Queue) take() []record.Result {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	taken := q.results
	q.results = nil
	return taken
}

func (q *Queue) isEmpty() bool {
	q.mutex.Lock()
	defer q.mutex.Unlock()
	return len(q.results) == 0
}
