package controller_test

import (
	"context"
	"testing"
	"time"

	configv1 "github.com/openshift/api/config/v1"
	consolev1 "github.com/openshift/api/console/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/openshift/update-preflight/collector/verdict"
	"github.com/openshift/update-preflight/runner"
	"github.com/openshift/update-preflight/runner/trigger/console"
	"github.com/openshift/update-preflight/runner/trigger/controller"
	"github.com/openshift/update-preflight/test/await"
)

// The console has a banner while the verdict on the selected update is Blocked. It goes when that is remedied, and there
// is none for an update that is only offered.
func TestConsoleFollowsTheSelection(t *testing.T) {
	const minor, patch = "4.19.8", "4.18.8" // the events about them are no other test's
	w := newWorld(t)
	w.install()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: console.Namespace}}
	if err := w.client.Create(t.Context(), namespace); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := console.Uninstall(context.WithoutCancel(t.Context()), w.cluster.Dynamic); err != nil {
			t.Error(err)
		}
	})
	banner := func(ctx context.Context) string {
		found, err := w.cluster.Dynamic.Resource(consolev1.GroupVersion.WithResource("consolenotifications")).Get(ctx, console.Name,
			metav1.GetOptions{})
		if err != nil {
			return ""
		}
		text, _, _ := unstructured.NestedString(found.Object, "spec", "text")
		return text
	}
	decide(t, w.cluster, minor, verdict.Blocked, time.Hour)
	decide(t, w.cluster, patch, verdict.Blocked, time.Hour)
	w.setVersion(available(minor, patch))
	// No run of the controller replaces the verdicts: each ends at once, without one.
	lead(t, w.cluster, w.log, controller.Options{
		Ahead: 3, Run: runner.Options{Limits: runner.Limits{Timeout: time.Nanosecond}},
		Signals: newSignals(t, w.cluster),
	})
	await.Until(t, "the dashboard exists", func(ctx context.Context) bool {
		_, err := w.cluster.Kubernetes.CoreV1().ConfigMaps(console.Namespace).Get(ctx, console.Dashboard, metav1.GetOptions{})
		return err == nil
	})
	if text := banner(t.Context()); text != "" {
		t.Errorf("no update is selected, but the banner is %q", text)
	}
	w.setVersion(available(minor, patch), desired(configv1.Update{Version: minor}))
	const want = "The preflight blocks the update to " + minor + ": 1 finding."
	await.Until(t, "the banner is "+want, func(ctx context.Context) bool { return banner(ctx) == want })
	decide(t, w.cluster, minor, verdict.Ready, time.Hour)
	await.Until(t, "the banner is gone", func(ctx context.Context) bool { return banner(ctx) == "" })
	w.setVersion()
}
