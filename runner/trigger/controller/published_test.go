package controller_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/trigger/published"
	"github.com/openshift/update-preflight/test/await"
)

// What is recorded is published for CVO, of each target that has a verdict, also of one that
// is not offered, and restored when it is deleted or changed.
func TestVerdictsArePublished(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: published.Namespace}})
	w.setVersion(available(minor))
	w.run(minor, blocks("RiskA"))
	w.run("4.18.7")
	w.start()
	w.awaitPublished(minor, "Complete Blocked")
	w.awaitPublished("4.18.7", "Complete Ready")

	var content corev1.ConfigMap
	if err := w.client.Get(t.Context(), client.ObjectKey{Namespace: published.Namespace, Name: published.Name}, &content); err != nil {
		t.Fatal(err)
	}
	key := keyOf(minor)
	content.Data[key] = strings.ReplaceAll(content.Data[key], "Blocked", "Ready")
	content.Data["uninstalled"] = "true"
	content.Data[keyOf("4.18.6")] = content.Data[key]
	if err := w.client.Update(t.Context(), &content); err != nil {
		t.Fatal(err)
	}
	w.awaitPublished(minor, "Complete Blocked")
	w.awaitPublished("4.18.6")
	if err := w.client.Delete(t.Context(), &content); err != nil {
		t.Fatal(err)
	}
	w.awaitPublished(minor, "Complete Blocked")

	var header corev1.ConfigMapList
	if err := w.client.List(t.Context(), &header, client.InNamespace(record.Namespace), client.HasLabels{record.Label}); err != nil {
		t.Fatal(err)
	}
	for i := range header.Items {
		header.Items[i].Data["verdict.json"] += " "
		if err := w.client.Update(t.Context(), &header.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	w.awaitPublished(minor)
	w.awaitPublished("4.18.7")
	w.hold("4.18.8")
	w.awaitPublished("4.18.8", "Running")
}

// A change of the cluster withdraws what is published, also of a release that is not offered,
// which the controller does not run again.
func TestChangeWithdrawsThePublication(t *testing.T) {
	w := newWorld(t)
	w.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: published.Namespace}})
	w.setVersion(available(minor))
	w.run(minor)
	w.run("4.18.7")
	w.start()
	w.awaitPublished(minor, "Complete Ready")
	w.awaitPublished("4.18.7", "Complete Ready")

	added := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "added"}}
	w.create(added)
	t.Cleanup(func() {
		if err := w.client.Delete(context.WithoutCancel(t.Context()), added); err != nil {
			t.Error(err)
		}
	})
	w.awaitPublished(minor, "Complete")
	w.awaitPublished("4.18.7", "Complete")
}

func keyOf(version string) string {
	_, digest, _ := strings.Cut(image(version), "@")
	return strings.ReplaceAll(digest, ":", "-")
}

// awaitPublished waits until exactly these runs of a version are published: phase and decision.
func (w *world) awaitPublished(version string, want ...string) {
	w.t.Helper()
	await.Until(w.t, "the published runs of "+version+" are "+strings.Join(want, ", "), func(ctx context.Context) bool {
		var content corev1.ConfigMap
		if err := w.client.Get(ctx, client.ObjectKey{Namespace: published.Namespace, Name: published.Name}, &content); err != nil ||
			content.Data["uninstalled"] != "false" {
			return false
		}
		var entry []struct {
			Phase    string `json:"phase"`
			Decision string `json:"decision"`
		}
		if text := content.Data[keyOf(version)]; text != "" && json.Unmarshal([]byte(text), &entry) != nil {
			return false
		}
		var got []string
		for _, each := range entry {
			got = append(got, strings.TrimSpace(each.Phase+" "+each.Decision))
		}
		return slices.Equal(got, want)
	})
}
