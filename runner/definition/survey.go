package definition

import (
	"errors"
	"time"

	"k8s.io/client-go/dynamic"

	"github.com/openshift/update-preflight/collector/finding"
)

const (
	maxObjects = 50_000
	maxBytes   = 512 << 20
	maxPage    = 500
)

type survey struct {
	client  dynamic.Interface
	now     time.Time
	budget  *budget
	found   []finding.Finding
	unread  []unread
	objects int
}

// unread is a definition for which the check was inconclusive.
type unread struct {
	name string
	err  error
}

// errBudget is returned for objects beyond the limits.
var errBudget = errors.New("not read: the objects of the preflight exceed 50 000 objects or 512 MiB")

// budget counts what may still be read.
type budget struct{ objects, bytes int }

func newBudget() *budget { return &budget{objects: maxObjects, bytes: maxBytes} }

// take accounts for a page, and returns errBudget beyond the limits.
func (b *budget) take(objects, bytes int) error {
	b.objects -= objects
	b.bytes -= bytes
	if b.objects < 0 || b.bytes < 0 {
		return errBudget
	}
	return nil
}
