package jobs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// failures are the requests to the API server that fail at present.
type failures struct {
	// denied cancels the start of the watches with the first error that a retry
	// cannot fix.
	denied context.CancelCauseFunc

	mutex sync.Mutex
	// failing has the errors by the operation.
	failing map[string]error
}

// watchResult records whether a watch works.
func (f *failures) watchResult(resource string, err error) {
	if resource != watchEvents && (apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err)) {
		f.denied(err)
	}
	f.record("the watch on "+resource, err)
}

// record records the result of an operation.
func (f *failures) record(operation string, err error) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.failing, operation)
	if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		f.failing[operation] = err
	}
}

func (f *failures) String() string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	var texts []string
	for _, operation := range slices.Sorted(maps.Keys(f.failing)) {
		texts = append(texts, fmt.Sprintf("%s: %v", operation, f.failing[operation]))
	}
	return strings.Join(texts, "; ")
}
