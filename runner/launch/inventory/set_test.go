package inventory_test

import (
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// A watch has the objects without what a run does not use. It ends when it is stopped, also while an event
// waits for a receiver: the bubble of the test has no goroutine left then.
func TestWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := watch.NewFakeWithChanSize(2, false)
		client := fake.NewSimpleMetadataClient(fake.NewTestScheme())
		client.PrependWatchReactor("*", clienttesting.DefaultWatchReactor(source, nil))
		events, err := inventory.New(nil, client).Watch(t.Context(), inventory.Kinds()[0], metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"one", "two"} {
			source.Add(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
				Name: name, Annotations: map[string]string{"large": ""}, ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "large"}},
			}})
		}
		object, ok := (<-events.ResultChan()).Object.(*metav1.PartialObjectMetadata)
		if !ok || object.Name != "one" || object.Annotations != nil || object.ManagedFields != nil {
			t.Errorf("got %+v, want the name alone", object)
		}
		events.Stop()
		events.Stop() // again is no error
	})
}
