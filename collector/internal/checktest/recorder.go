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

// recorder records the requests to an API server, as its authorizer interprets them.
type recorder struct {
	mutex    sync.Mutex
	requests []access.Request
}

func (r *recorder) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(httpRequest *http.Request) (*http.Response, error) {
		r.record(httpRequest)
		return next.RoundTrip(httpRequest)
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(httpRequest *http.Request) (*http.Response, error) {
	return f(httpRequest)
}

// record records requests for resources. Discovery, other non-resource URLs and reviews of the user's own
// permissions are not part of a check's declaration.
func (r *recorder) record(httpRequest *http.Request) {
	resolver := request.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	info, err := resolver.NewRequestInfo(httpRequest)
	if err != nil || !info.IsResourceRequest || info.Resource == "selfsubjectaccessreviews" {
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests = append(r.requests, access.Request{
		Verb: info.Verb, Group: info.APIGroup, Resource: info.Resource, Subresource: info.Subresource, Namespace: info.Namespace, Name: info.Name,
	})
}

// undeclared fails the test for each request that the check does not declare, and forgets the requests.
func (r *recorder) undeclared(t *testing.T, c check.Check) {
	t.Helper()
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for _, made := range r.requests {
		if !slices.ContainsFunc(slices.Concat(c.Reads, c.IfPermitted), func(declared access.Request) bool { return access.Includes(declared, made) }) {
			t.Errorf("check %s made a request that it does not declare: %s", c.Name, access.Describe(made))
		}
	}
	r.requests = nil
}

func (r *recorder) forget() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.requests = nil
}
