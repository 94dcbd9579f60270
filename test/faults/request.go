package faults

import (
	"context"
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
	// Write counts from 1 what changes the cluster; it is 0 for everything
	// else, to which dry runs and the reviews of permissions and tokens belong.
	Write int
}

// Requests are those that came so far, in their order.
func (p *Proxy) Requests() []Request {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return slices.Clone(p.requests)
}

// Writes is how many of them are writes.
func (p *Proxy) Writes() int {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return p.writes
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
		p.writes++
		known.Write = p.writes
	}
	p.requests = append(p.requests, known)
	return known
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
