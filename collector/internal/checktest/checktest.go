// Package checktest answers: what does a built-in check say of a cluster that
// looks like this? The cluster is a real API server that is made to look so.
package checktest

import (
	"context"
	"strings"
	"testing"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"

	"github.com/openshift/update-preflight/collector"
	"github.com/openshift/update-preflight/collector/check"
	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/snapshot"
	"github.com/openshift/update-preflight/collector/update"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
)

// Server is an API server that tests share. Tests of one that has objects which
// there can be only one of cannot run in parallel.
type Server struct{ config *rest.Config }

// On is the server that config reaches, as one who may do everything.
func On(config *rest.Config) Server {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return Server{config: config}
}

// Nobody reaches the server as a user who may do nothing.
func (s Server) Nobody() Server {
	config := rest.CopyConfig(s.config)
	config.Impersonate.UserName = "nobody"
	return Server{config: config}
}

// View is what one run of a check has read of the server.
type View struct {
	*snapshot.Cluster
	requests *recorder
}

// Snapshot is the cluster as it is now. The requests that it makes are recorded.
func (s Server) Snapshot(t *testing.T) View {
	t.Helper()
	requests := &recorder{}
	config := rest.CopyConfig(s.config)
	config.Wrap(requests.wrap)
	api, err := cluster.Connect(config, "checktest")
	if err != nil {
		t.Fatal(err)
	}
	return View{Cluster: snapshot.Of(api), requests: requests}
}

// Hold has the server hold these objects, with their status, until the test
// ends. Namespaces are created where they are missing, and stay.
func (s Server) Hold(t *testing.T, objects ...runtime.Object) {
	t.Helper()
	client := dynamic.NewForConfigOrDie(s.config)
	groups := memory.NewMemCacheClient(kubernetes.NewForConfigOrDie(s.config).Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(groups)
	for _, object := range objects {
		s.hold(t, client, mapper, unstructure(t, object))
	}
}

func (s Server) hold(t *testing.T, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) {
	t.Helper()
	kind := object.GroupVersionKind()
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		t.Fatal(err)
	}
	resources := client.Resource(mapping.Resource).Namespace(object.GetNamespace())
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		resources = client.Resource(mapping.Resource)
	} else {
		s.namespace(t, object.GetNamespace())
	}
	created, err := resources.Create(t.Context(), object, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		now := metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
		if err := resources.Delete(context.WithoutCancel(t.Context()), object.GetName(), now); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
	status, ok := object.Object["status"]
	if !ok {
		return
	}
	err = retry.RetryOnConflict(retry.DefaultRetry, func() error { // with controllers that look at it too
		current, err := resources.Get(t.Context(), created.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Object["status"] = status
		_, err = resources.UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) { // without a subresource it has its status already
		t.Fatal(err)
	}
}

func (s Server) namespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := kubernetes.NewForConfigOrDie(s.config).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// unstructure makes what the dynamic client takes of a typed object, whose kind
// need not be filled in.
func unstructure(t *testing.T, object runtime.Object) *unstructured.Unstructured {
	t.Helper()
	if object, ok := object.(*unstructured.Unstructured); ok {
		return object
	}
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		scheme.AddToScheme, apiserverv1.Install, configv1.Install, machinev1beta1.Install, machineconfigurationv1.Install,
	} {
		if err := add(known); err != nil {
			t.Fatal(err)
		}
	}
	kinds, _, err := known.ObjectKinds(object)
	if err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		t.Fatal(err)
	}
	untyped := &unstructured.Unstructured{Object: content}
	untyped.SetGroupVersionKind(kinds[0])
	return untyped
}

// Said is what tables compare of a finding.
type Said struct {
	Outcome preflight.Outcome
	Reason  string
}

// Run runs a check on one update, as a preflight does: an error of the check is
// the Unknown finding that the administrator sees. It fails the test when a
// finding that is not a pass has no message, one that blocks has no remedy, or
// the check made a request that it does not declare.
func Run(t *testing.T, c check.Check, view View, u update.Update) []finding.Finding {
	t.Helper()
	return RunAt(t, c, view, check.Subject{Update: u, Now: time.Now()})
}

// RunAt is Run for a subject with a time of its own; its cluster is the view.
func RunAt(t *testing.T, c check.Check, view View, subject check.Subject) []finding.Finding {
	t.Helper()
	subject.Cluster = view.Cluster
	sources := collector.Bind(subject, []check.Check{c})
	findings := collector.Collect(t.Context(), sources, func(collector.Source, []finding.Finding) {}).Findings
	for _, f := range findings {
		if f.Message == "" || f.Reason == "" {
			t.Errorf("%s is %s without a message or a reason", f.Name, f.Outcome)
		}
		if f.Blocks && f.Bypass == nil && strings.TrimSpace(f.Remediation) == "" {
			t.Errorf("%s blocks without a remedy", f.Name)
		}
	}
	view.requests.undeclared(t, c)
	return findings
}

// Summary is what the findings say, by name.
func Summary(findings []finding.Finding) map[string]Said {
	said := map[string]Said{}
	for _, f := range findings {
		said[f.Name] = Said{f.Outcome, f.Reason}
	}
	return said
}

// Update is the update from one version to another.
func Update(t *testing.T, from, to string) update.Update {
	t.Helper()
	asked, err := update.Parse(from, to)
	if err != nil {
		t.Fatal(err)
	}
	return asked
}
