// Package apiserver answers: which API server has a test that needs no cluster?
//
// [Start] serves objects from memory. Like a real one, it assigns UIDs, times and resource versions, refuses a write to
// an earlier version, selects by labels, watches, deletes what a deleted object owns, and refuses what [Server.Deny]
// names. It validates no object, sets no defaults and has no controllers: what depends on these needs a real one
// (package cluster).
package apiserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	openshift "github.com/openshift/api"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// User is the name of the user of a request without impersonation.
const User = "tester"

// Request is what a user requests of the server.
type Request = authorizationv1.ResourceAttributes

// Server is an API server.
type Server struct {
	// URL is its address.
	URL string
	// Kubeconfig is the path of a file with it.
	Kubeconfig string

	codecs serializer.CodecFactory
	kinds  map[schema.GroupVersionResource]string
	// scopes are whether the objects of a resource are in namespaces, for those that are not of Kubernetes. statuses
	// are the resources with a status subresource.
	scopes, statuses map[schema.GroupVersionResource]bool
	logs             map[string]string

	mutex  sync.Mutex
	store  store
	denied []func(user string, request Request) bool
	writes []string
}

// Start starts a server with these objects, until the end of the test. It serves the APIs of Kubernetes, the
// configuration of OpenShift, and the groups of the objects.
func Start(tb testing.TB, objects ...runtime.Object) *Server {
	tb.Helper()
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientscheme.AddToScheme, openshift.Install, apiextensionsv1.AddToScheme} {
		if err := add(known); err != nil {
			tb.Fatal(err)
		}
	}
	s := &Server{
		codecs: serializer.NewCodecFactory(known), kinds: kindsOf(known), scopes: map[schema.GroupVersionResource]bool{},
		statuses: statusesOf(known), logs: map[string]string{}, store: newStore(),
	}
	served := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = served.URL
	tb.Cleanup(func() {
		s.mutex.Lock()
		s.store.close()
		s.mutex.Unlock()
		served.Close()
	})
	s.Kubeconfig = filepath.Join(tb.TempDir(), "kubeconfig")
	content := fmt.Sprintf(
		`{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c"}}],"current-context":"c"}`, s.URL)
	if err := os.WriteFile(s.Kubeconfig, []byte(content), 0o600); err != nil {
		tb.Fatal(err)
	}
	for _, object := range objects {
		s.Add(tb, object)
	}
	return s
}

// kindsOf are the kinds of the resources that are always served.
func kindsOf(known *runtime.Scheme) map[schema.GroupVersionResource]string {
	kinds := map[schema.GroupVersionResource]string{}
	for kind := range known.AllKnownTypes() {
		ofKubernetes := clientscheme.Scheme.Recognizes(kind)
		if ofKubernetes || kind.Group == "config.openshift.io" || kind.Group == apiextensionsv1.GroupName {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			kinds[plural] = kind.Kind
		}
	}
	kinds[schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}] = "APIService"
	return kinds
}

// statusesOf are the resources of these kinds with a status subresource: those that are listed, and have a status.
func statusesOf(known *runtime.Scheme) map[schema.GroupVersionResource]bool {
	statuses := map[schema.GroupVersionResource]bool{{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}: true}
	for kind, of := range known.AllKnownTypes() {
		_, hasStatus := of.FieldByName("Status")
		if hasStatus && known.Recognizes(kind.GroupVersion().WithKind(kind.Kind+"List")) {
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			statuses[plural] = true
		}
	}
	return statuses
}

// Config is the configuration of a client without a limit of its rate.
func (s *Server) Config() *rest.Config { return &rest.Config{Host: s.URL, QPS: -1} }

// Add creates an object with its status.
func (s *Server) Add(tb testing.TB, object runtime.Object) {
	tb.Helper()
	text, err := json.Marshal(object)
	content := map[string]any{}
	if err == nil {
		err = json.Unmarshal(text, &content)
	}
	if err != nil {
		tb.Fatal(err)
	}
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Empty() {
		found, _, err := clientscheme.Scheme.ObjectKinds(object)
		if err != nil {
			tb.Fatal(err)
		}
		kind = found[0]
	}
	content["apiVersion"], content["kind"] = kind.GroupVersion().String(), kind.Kind
	s.mutex.Lock()
	defer s.mutex.Unlock()
	plural := s.resourceOf(kind)
	s.kinds[plural] = kind.Kind
	namespace, name := nameOf(content)
	s.store.put(key{GroupVersionResource: plural, namespace: namespace, name: name}, content)
}

// Serve adds a resource without objects.
func (s *Server) Serve(resource schema.GroupVersionResource, kind string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.kinds[resource] = kind
}

// ServeAs adds a resource without objects, of a group, a version, a name, a kind and a scope, with a status subresource or
// without.
func (s *Server) ServeAs(resource metav1.APIResource, status bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	at := schema.GroupVersionResource{Group: resource.Group, Version: resource.Version, Resource: resource.Name}
	s.kinds[at], s.scopes[at], s.statuses[at] = resource.Kind, resource.Namespaced, status
}

// resourceOf is the resource of a kind that is served, or the one that its name suggests.
func (s *Server) resourceOf(kind schema.GroupVersionKind) schema.GroupVersionResource {
	for resource := range s.scopes {
		if resource.GroupVersion() == kind.GroupVersion() && s.kinds[resource] == kind.Kind {
			return resource
		}
	}
	plural, _ := meta.UnsafeGuessKindToResource(kind)
	return plural
}

// Deny refuses the requests of which a function is true, and reports so in reviews of permissions.
func (s *Server) Deny(denies func(user string, request Request) bool) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.denied = append(s.denied, denies)
}

// Log is the output of a container.
func (s *Server) Log(namespace, pod, container, text string) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.logs[namespace+"/"+pod+"/"+container] = text
}

// Writes are the requests so far that changed objects, such as "create configmaps openshift-config/name", without
// those that were only tried (dry run).
func (s *Server) Writes() []string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.Clone(s.writes)
}

// mayNot reports whether a request is refused.
func (s *Server) mayNot(user string, request Request) bool {
	return slices.ContainsFunc(s.denied, func(denies func(string, Request) bool) bool { return denies(user, request) })
}

// Remove deletes a ConfigMap.
func (s *Server) Remove(tb testing.TB, namespace, name string) {
	tb.Helper()
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.store.remove(key{GroupVersionResource: corev1.SchemeGroupVersion.WithResource("configmaps"), namespace: namespace, name: name})
}
