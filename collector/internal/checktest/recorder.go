package checktest

import (
	"net/http"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/collector/check"
)

// recorder keeps the requests to an API server, as its authorizer sees them.
type recorder struct {
	mutex sync.Mutex
	made  []access.Request
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(httpRequest *http.Request) (*http.Response, error) {
		r.record(httpRequest)
		return next.RoundTrip(httpRequest)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(httpRequest *http.Request) (*http.Response, error) {
	return f(httpRequest)
}

// record keeps requests for resources. Discovery and other non-resource URLs are
// not part of what checks declare.
func (r *recorder) record(httpRequest *http.Request) {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(httpRequest)
	if err != nil || !info.IsResourceRequest {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.made = append(r.made, access.Request{
		Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	})
}

// undeclared fails the test for each request that the check does not declare.
func (r *recorder) undeclared(t *testing.T, c check.Check) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, made := range r.made {
		if !slices.ContainsFunc(c.Reads, func(declared access.Request) bool { return access.Includes(declared, made) }) {
			t.Errorf("check %s made a request that it does not declare: %s", c.Name, access.Describe(made))
		}
	}
	r.made = nil
}
