package definition

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
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

const (
	// pageBytes is the wanted size of a page, and firstPage its number of objects while
	// the size of an object is unknown: objects have up to 1.5 MiB.
	pageBytes = 2 << 20
	firstPage = 20
)

// stored validates the objects of a definition, if the target may treat them otherwise.
func (s *survey) stored(ctx context.Context, c change) error {
	version := servedVersion(c.present, func(name string) bool { return hasVersion(c.target, name) })
	under, gone := version, c.gone()
	if version == "" {
		version, under = servedVersion(c.present, func(string) bool { return true }), storageVersion(c.target)
	}
	if version == "" {
		return nil // no object can be read or written
	}
	t, err := c.tally(version, under)
	if err != nil || t.rules == nil && len(gone) == 0 {
		return err
	}
	t.gone = gone
	resource := schema.GroupVersionResource{Group: c.present.Spec.Group, Version: version, Resource: c.present.Spec.Names.Plural}
	err = s.each(ctx, resource, func(page []unstructured.Unstructured) error { return t.addPage(ctx, page) })
	s.objects += t.count
	s.found = append(s.found, t.findings(c)...)
	return err
}

// each reads all objects of a resource in pages of a bounded size.
func (s *survey) each(ctx context.Context, resource schema.GroupVersionResource, do func(page []unstructured.Unstructured) error) error {
	options := metav1.ListOptions{Limit: firstPage}
	for {
		page, err := s.client.Resource(resource).List(ctx, options)
		if err != nil {
			return err
		}
		bytes := 0
		for i := range page.Items {
			bytes += sizeOf(page.Items[i].Object)
		}
		if err := s.budget.take(len(page.Items), bytes); err != nil {
			return err
		}
		if err := do(page.Items); err != nil {
			return err
		}
		options.Continue = page.GetContinue()
		if options.Continue == "" {
			return nil
		}
		options.Limit = pageOf(len(page.Items), bytes)
	}
}

// pageOf is the number of objects for the next page, by the size of those in the last.
func pageOf(objects, bytes int) int64 {
	if objects == 0 {
		return firstPage
	}
	return int64(min(maxPage, max(1, pageBytes/max(1, bytes/objects))))
}

// sizeOf estimates the size of a value as JSON, in bytes.
func sizeOf(value any) int {
	switch value := value.(type) {
	case string:
		return len(value) + 2
	case map[string]any:
		size := 2
		for key, inner := range value {
			size += len(key) + 4 + sizeOf(inner)
		}
		return size
	case []any:
		size := 2
		for _, inner := range value {
			size += 1 + sizeOf(inner)
		}
		return size
	}
	return 8
}
