package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Request is a request that the proxy received.
type Request struct {
	// Method is the HTTP method, and Path the path of the URL, without the query.
	Method, Path string
	// Watch is true for a watch.
	Watch bool
	// Write is the name of a request that changes the cluster: method, resource and
	// count, as in "POST jobs 2". It is empty for all other requests, which include dry
	// runs and reviews of permissions and tokens.
	Write string
}

// Requests returns the requests so far, in order.
func (p *Proxy) Requests() []Request {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.requests)
}

// Writes returns the names of the writes so far, in order.
func (p *Proxy) Writes() []string {
	var writes []string
	for _, request := range p.Requests() {
		if request.Write != "" {
			writes = append(writes, request.Write)
		}
	}
	return writes
}

type requestKey struct{}

// requestOf returns the entry that recordRequests made for r.
func requestOf(r *http.Request) Request {
	recorded, _ := r.Context().Value(requestKey{}).(Request)
	return recorded
}

// recordRequests records each request before a fault applies to it.
func (p *Proxy) recordRequests(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		recorded := p.record(r)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, recorded)))
	})
}

func (p *Proxy) record(r *http.Request) Request {
	query := r.URL.Query()
	recorded := Request{Method: r.Method, Path: r.URL.Path, Watch: query.Get("watch") == "true" || query.Get("watch") == "1"}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	recorded.Write = p.writes.Name(r)
	p.requests = append(p.requests, recorded)
	return recorded
}

// Writes counts the writes of one client by method and resource.
type Writes map[string]int

// Name returns the name of the next request of the client if it is a write, as in [Request].
func (w Writes) Name(r *http.Request) string {
	if !isWrite(r) {
		return ""
	}
	kind := r.Method + " " + resourceOf(r.URL.Path)
	w[kind]++
	return fmt.Sprintf("%s %d", kind, w[kind])
}

// resourceOf returns the resource in a path of the Kubernetes API, with its subresource
// if any: pods/eviction for /api/v1/namespaces/default/pods/web/eviction.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" {
		parts = parts[min(2, len(parts)):] // api, the version
	} else {
		parts = parts[min(3, len(parts)):] // apis, the group, the version
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch {
	case len(parts) == 0:
		return path
	case len(parts) > 2:
		return parts[0] + "/" + parts[2]
	default:
		return parts[0]
	}
}

// isWrite reports whether a request can change an object in the cluster.
func isWrite(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	isReview := strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") || strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/")
	return !isReview && !slices.Contains(r.URL.Query()["dryRun"], "All")
}
