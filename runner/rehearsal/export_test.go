package rehearsal

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
)

// Guard is a guard, for its tests.
type Guard struct{ of *guard }

// NewGuard is newGuard.
func NewGuard(client kubernetes.Interface, id string) Guard { return Guard{of: newGuard(client, id)} }

// Create is create.
func (g Guard) Create(ctx context.Context) error { return g.of.create(ctx) }

// Await is await.
func (g Guard) Await(ctx context.Context, create func(context.Context, *unstructured.Unstructured) error) error {
	return g.of.await(ctx, create)
}

// Intact is intact.
func (g Guard) Intact(ctx context.Context) error { return g.of.intact(ctx) }

// Delete is delete.
func (g Guard) Delete(ctx context.Context) error { return g.of.delete(ctx) }

// ProbeResource is probeResource.
func ProbeResource() schema.GroupVersionResource { return probeResource() }
