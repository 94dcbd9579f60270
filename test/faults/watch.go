package faults

import (
	"context"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// watch is a watch in progress.
type watch struct {
	path string
	cut  context.CancelFunc
}

// CutWatches breaks all watches in progress, without a final event.
func (p *Proxy) CutWatches() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for watch := range p.watches {
		watch.cut()
	}
}

// ExpireWatches ends all watches in progress, and rejects the next resumption of each:
// its resource version is too old, as after a compaction of etcd.
func (p *Proxy) ExpireWatches() {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	for watch := range p.watches {
		p.expired[watch.path] = true
		watch.cut()
	}
}

// trackWatches keeps the watches in progress, so that they can be cut.
func (p *Proxy) trackWatches(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !requestOf(r).Watch {
			next.ServeHTTP(w, r)
			return
		}
		if p.tooOld(r) {
			refuse(w, apierrors.NewResourceExpired("too old resource version: 1 (2)").Status())
			return
		}
		ctx, cut := context.WithCancel(r.Context())
		defer cut()
		defer p.track(&watch{path: r.URL.Path, cut: cut})()
		defer p.endExpired(r)
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// track adds a watch in progress, and returns the function that removes it.
func (p *Proxy) track(begun *watch) (remove func()) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.watches[begun] = true
	return func() {
		p.mutex.Lock()
		defer p.mutex.Unlock()
		delete(p.watches, begun)
	}
}

// endExpired is deferred, and ends the response of an expired watch without an error, as
// API servers do: a client does not resume a watch after an error of its stream.
func (p *Proxy) endExpired(r *http.Request) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if !p.expired[r.URL.Path] {
		return
	}
	if reason := recover(); reason != nil && reason != http.ErrAbortHandler { //nolint:errorlint // a panic is not wrapped
		panic(reason)
	}
}

// tooOld reports, once for each expired path, whether a watch resumes an expired one.
func (p *Proxy) tooOld(r *http.Request) bool {
	version := r.URL.Query().Get("resourceVersion")
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if version == "" || version == "0" || !p.expired[r.URL.Path] {
		return false
	}
	delete(p.expired, r.URL.Path)
	return true
}
