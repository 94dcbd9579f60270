package checktest

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"

	apiserverv1 "github.com/openshift/api/apiserver/v1"
	configv1 "github.com/openshift/api/config/v1"
	machinev1beta1 "github.com/openshift/api/machine/v1beta1"
	machineconfigurationv1 "github.com/openshift/api/machineconfiguration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/yaml"

	"github.com/openshift/update-preflight/collector/cluster"
	"github.com/openshift/update-preflight/collector/snapshot"
)

// Server is an API server that tests share. Tests that create an object which
// exists once in a cluster cannot run in parallel.
type Server struct {
	config *rest.Config
	// madeUp is true where the test makes up some responses.
	madeUp bool
}

// Connect is the server that config reaches, as an administrator.
func Connect(config *rest.Config) Server {
	config = rest.CopyConfig(config)
	config.QPS = -1
	config.WarningHandlerWithContext = rest.NoWarnings{}
	return Server{config: config}
}

// UnprivilegedUser is the user of [Server.Unprivileged].
const UnprivilegedUser = "unprivileged"

// Unprivileged is the server as a user without permissions.
func (s Server) Unprivileged() Server {
	config := rest.CopyConfig(s.config)
	config.Impersonate.UserName = UnprivilegedUser
	return Server{config: config, madeUp: s.madeUp}
}

// Of is the server as a program reaches it, whose name objects have in their managed fields.
func (s Server) Of(program string) Server {
	config := rest.CopyConfig(s.config)
	config.UserAgent = program
	return Server{config: config, madeUp: s.madeUp}
}

// View is a snapshot of the server that records its requests.
type View struct {
	*snapshot.Cluster

	server   Server
	api      *cluster.Cluster
	requests *recorder
}

// Snapshot returns a snapshot of the current state of the cluster.
func (s Server) Snapshot(t *testing.T) View {
	t.Helper()
	requests := &recorder{}
	config := rest.CopyConfig(s.config)
	config.Wrap(requests.wrap)
	api, err := cluster.Connect(config, "checktest")
	if err != nil {
		t.Fatal(err)
	}
	return View{Cluster: snapshot.Of(api), server: s, api: api, requests: requests}
}

// Create creates these objects, with their status, and deletes them when the test
// ends. Missing namespaces are created, and stay.
func (s Server) Create(t *testing.T, objects ...runtime.Object) {
	t.Helper()
	client := dynamic.NewForConfigOrDie(s.config)
	groups := memory.NewMemCacheClient(kubernetes.NewForConfigOrDie(s.config).Discovery())
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(groups)
	for _, object := range objects {
		s.create(t, client, mapper, unstructuredOf(t, object))
	}
}

func (s Server) create(t *testing.T, client dynamic.Interface, mapper meta.RESTMapper, object *unstructured.Unstructured) {
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
		s.createNamespace(t, object.GetNamespace())
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
	if status, ok := object.Object["status"]; ok {
		writeStatus(t, resources, created.GetName(), status)
	}
}

// writeStatus retries conflicts with controllers of the server. A resource without
// a status subresource has its status already.
func writeStatus(t *testing.T, resources dynamic.ResourceInterface, name string, status any) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current, err := resources.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		current.Object["status"] = status
		_, err = resources.UpdateStatus(t.Context(), current, metav1.UpdateOptions{})
		return err
	})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

func (s Server) createNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	_, err := kubernetes.NewForConfigOrDie(s.config).CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
}

// unstructuredOf converts a typed object, whose kind may be empty, for the dynamic client.
func unstructuredOf(t *testing.T, object runtime.Object) *unstructured.Unstructured {
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

// Define makes the server serve the resource of a CustomResourceDefinition in a file, until all tests have ended.
func (s Server) Define(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file) //nolint:gosec // the test names the file
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, crd); err != nil {
		t.Fatal(err)
	}
	_, err = clientset.NewForConfigOrDie(s.config).ApiextensionsV1().CustomResourceDefinitions().Create(t.Context(), crd,
		metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	objects := dynamic.NewForConfigOrDie(s.config).Resource(schema.GroupVersionResource{
		Group: crd.Spec.Group, Version: crd.Spec.Versions[0].Name, Resource: crd.Spec.Names.Plural,
	})
	err = wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		_, err := objects.List(ctx, metav1.ListOptions{})
		return err == nil, nil
	})
	if err != nil {
		t.Fatalf("the server does not serve %s: %v", crd.Name, err)
	}
}

// Response is the response of an API server to a request.
type Response func(*http.Request) (code int, body []byte)

// NotServed is the response of a server that does not have the API.
func NotServed(*http.Request) (code int, body []byte) {
	return http.StatusNotFound, []byte("404 page not found\n")
}

// Body is the response 200 with this body.
func Body(body string) Response {
	return func(*http.Request) (int, []byte) { return http.StatusOK, []byte(body) }
}

// Pages is the response of a server with these objects: more of them than a test
// can create, or some that a real server would reject or change. It fails the test
// for a list that is not read in pages.
func Pages[T any](t *testing.T, apiVersion, kind string, objects []T) Response {
	t.Helper()
	return func(request *http.Request) (int, []byte) {
		from, _ := strconv.Atoi(request.URL.Query().Get("continue"))
		limit, err := strconv.Atoi(request.URL.Query().Get("limit"))
		if err != nil || limit > 500 {
			t.Errorf("%s is not read in pages", request.URL)
			limit = len(objects)
		}
		to, next := min(from+limit, len(objects)), ""
		if to < len(objects) {
			next = strconv.Itoa(to)
		}
		body, err := json.Marshal(map[string]any{
			"apiVersion": apiVersion, "kind": kind, "metadata": map[string]string{"continue": next}, "items": objects[from:to],
		})
		if err != nil {
			t.Error(err)
		}
		return http.StatusOK, body
	}
}

// Responding is the server with other responses on these paths.
func (s Server) Responding(paths map[string]Response) Server {
	config := rest.CopyConfig(s.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return override{paths: paths, next: next} })
	return Server{config: config, madeUp: true}
}

type override struct {
	paths map[string]Response
	next  http.RoundTripper
}

func (o override) RoundTrip(request *http.Request) (*http.Response, error) {
	respond, ok := o.paths[request.URL.Path]
	if !ok {
		return o.next.RoundTrip(request)
	}
	code, body := respond(request)
	contentType := "text/plain"
	if bytes.HasPrefix(body, []byte("{")) {
		contentType = "application/json"
	}
	return &http.Response{
		StatusCode: code, Request: request, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {contentType}}, Body: io.NopCloser(bytes.NewReader(body)),
	}, nil
}
