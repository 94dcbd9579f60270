package faults

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
)

// Request is what a client asked for.
type Request struct {
	// Method and Path are those of HTTP; Path has no query.
	Method, Path string
	// Watch is true for a watch.
	Watch bool
	// Write names what changes the cluster, by what is done to which resource and
	// for how many-th time: "POST jobs 2". It is empty for everything else, to
	// which dry runs and the reviews of permissions and tokens belong.
	Write string
}

// Requests are those that came so far, in their order.
func (p *Proxy) Requests() []Request {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.requests)
}

// Writes are the names of those that are writes, in their order.
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

// requestOf is what account knows about a request.
func requestOf(r *http.Request) Request {
	known, _ := r.Context().Value(requestKey{}).(Request)
	return known
}

// account takes note of each request, before anything goes wrong with it.
func (p *Proxy) account(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		known := p.note(r)
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, known)))
	})
}

func (p *Proxy) note(r *http.Request) Request {
	query := r.URL.Query()
	known := Request{Method: r.Method, Path: r.URL.Path, Watch: query.Get("watch") == "true" || query.Get("watch") == "1"}
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if changes(r) {
		kind := r.Method + " " + resourceOf(r.URL.Path)
		p.writes[kind]++
		known.Write = fmt.Sprintf("%s %d", kind, p.writes[kind])
	}
	p.requests = append(p.requests, known)
	return known
}

// resourceOf is the resource in a path of the Kubernetes API, with a subresource
// where there is one: /api/v1/namespaces/default/pods/web/eviction is
// pods/eviction.
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

// changes is true for requests after which something in the cluster differs.
func changes(r *http.Request) bool {
	switch r.Method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return false
	}
	isReview := strings.HasPrefix(r.URL.Path, "/apis/authorization.k8s.io/") || strings.HasPrefix(r.URL.Path, "/apis/authentication.k8s.io/")
	return !isReview && !slices.Contains(r.URL.Query()["dryRun"], "All")
}
