package dryrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/json"
)

const (
	// parameter makes a write a dry run.
	parameter = "dryRun"
	// maxOptions bounds the options of a deletion, in bytes.
	maxOptions = 64 << 10
)

// guard is the transport that refuses what is neither a read nor a dry run of its identity.
type guard struct {
	next   http.RoundTripper
	server *url.URL
	// impersonation has the only headers of impersonation that a request may, and must, have.
	impersonation http.Header
	limits        *limits
}

func newGuard(next http.RoundTripper, server *url.URL, as Identity, within *limits) *guard {
	impersonation := http.Header{}
	impersonation.Set(transport.ImpersonateUserHeader, as.User)
	impersonation.Set(transport.ImpersonateUserExtraHeaderPrefix+url.PathEscape(ExtraKey), as.Rehearsal)
	return &guard{next: next, server: server, impersonation: impersonation, limits: within}
}

// refusedError is the error of a request that was not sent.
type refusedError struct{ method, path, rule string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s %q is %v: %s", e.method, e.path, ErrNotDryRun, e.rule)
}
func (e *refusedError) Unwrap() error { return ErrNotDryRun }

// RoundTrip implements http.RoundTripper. What was checked is a copy, and the copy is sent.
func (g *guard) RoundTrip(request *http.Request) (*http.Response, error) {
	checked := request.Clone(request.Context())
	err := g.limits.take(request.Context(), g.check(checked))
	if err != nil {
		if request.Body != nil {
			_ = request.Body.Close() // nothing was to be read
		}
		return nil, err
	}
	release := sync.OnceFunc(func() { <-g.limits.slots })
	response, err := g.next.RoundTrip(checked)
	if err != nil {
		release()
		return nil, err
	}
	response.Body = &countedBody{response.Body, release}
	if response.StatusCode/100 == 3 { // the API server has no other addresses
		return nil, errors.Join(&refusedError{request.Method, request.URL.Path, "the server redirects it"}, response.Body.Close())
	}
	return response, nil
}

// take waits for a slot, and counts a request, unless it was refused.
func (l *limits) take(ctx context.Context, refused error) error {
	if refused != nil {
		return refused
	}
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if l.sent.Add(1) > maxRequests {
		<-l.slots
		return ErrExhausted
	}
	return nil
}

// countedBody is one of those at once until it is closed.
type countedBody struct {
	io.ReadCloser

	release func()
}

func (b *countedBody) Close() error {
	defer b.release()
	return b.ReadCloser.Close()
}

// check refuses a request, and otherwise writes its query and options as they were understood.
func (g *guard) check(request *http.Request) error {
	parser := apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"), GrouplessAPIPrefixes: sets.NewString("api")}
	below := strings.TrimPrefix(request.URL.Path, strings.TrimSuffix(g.server.Path, "/"))
	info, invalid := parser.NewRequestInfo(&http.Request{Method: request.Method, URL: &url.URL{Path: below}})
	query, ambiguous := url.ParseQuery(request.URL.RawQuery)
	rule := g.target(request)
	switch {
	case rule != "":
	case cmp.Or(invalid, ambiguous) != nil:
		rule = "its path or its query cannot be parsed"
	case request.Method == http.MethodGet:
		rule = read(request, query, info)
	default:
		rule = write(request, query, info)
	}
	if rule != "" {
		return &refusedError{request.Method, request.URL.Path, rule}
	}
	request.URL.RawQuery, request.URL.Fragment = query.Encode(), ""
	return nil
}

// target requires the API server of the configuration, a path that is read in one way only, the identity, and no header
// that makes another request of it on the way.
func (g *guard) target(request *http.Request) string {
	impersonation := http.Header{}
	for key, values := range request.Header {
		switch {
		case key != http.CanonicalHeaderKey(key), key == "Connection", key == "Upgrade", key == "X-Http-Method",
			strings.HasSuffix(key, "Method-Override"):
			return "it has the header " + key
		case strings.HasPrefix(key, "Impersonate-"):
			impersonation[key] = values
		}
	}
	to := request.URL
	switch {
	case request.Response != nil:
		return "it follows a redirect"
	case to.Scheme != g.server.Scheme, to.Host != g.server.Host, request.Host != "" && request.Host != to.Host:
		return "it is not for the API server " + g.server.Host
	case to.Opaque != "", to.RawPath != "", path.Clean(to.Path) != to.Path, strings.Contains(to.Path, "%"),
		!strings.HasPrefix(to.Path, strings.TrimSuffix(g.server.Path, "/")+"/"):
		return "its path is not a canonical one of the API server"
	case !maps.EqualFunc(impersonation, g.impersonation, slices.Equal[[]string]):
		return "it does not impersonate exactly " + g.impersonation.Get(transport.ImpersonateUserHeader) + " of the rehearsal"
	case len(request.Trailer) > 0:
		return "it has headers after its body"
	}
	return ""
}

// read requires a read of objects, or of what is served, that ends by itself.
func read(request *http.Request, query url.Values, info *apirequest.RequestInfo) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(info.Path, "/"), "/")
	discovery := !info.IsResourceRequest && (first == "api" || first == "apis")
	object := info.IsResourceRequest && info.Subresource == "" && (info.Verb == "get" || info.Verb == "list")
	switch {
	case !discovery && !object:
		return "it does not read an object, a list of objects, or what is served"
	case query.Has("watch"), query.Has("follow"):
		return "it is a watch"
	case request.Body != nil && request.Body != http.NoBody:
		return "a read has no body"
	}
	return ""
}

// write requires a dry run of one object.
func write(request *http.Request, query url.Values, info *apirequest.RequestInfo) string {
	named := info.Name != "" && (info.Verb == "update" || info.Verb == "patch" || info.Verb == "delete")
	created := info.Name == "" && info.Verb == "create"
	switch {
	case !info.IsResourceRequest, info.Subresource != "", !named && !created:
		return "it does not read, create, update, patch or delete one object"
	case stores(info.APIGroup, info.Resource):
		return "servers of " + info.Resource + "." + info.APIGroup + " store a dry run"
	case !slices.Equal(query[parameter], []string{metav1.DryRunAll}):
		return "it is not a dry run, since its query does not have " + parameter + "=" + metav1.DryRunAll + " exactly once"
	case info.Verb == "delete":
		return options(request)
	}
	return ""
}

// stores reports whether the server of a resource writes other objects for it, and does not say, at least in some versions,
// that they are of a dry run (openshift-apiserver and oauth-apiserver, pkg/*/apiserver/registry).
func stores(group, resource string) bool {
	switch group + "/" + resource {
	case "authorization.openshift.io/clusterroles", "authorization.openshift.io/clusterrolebindings",
		"authorization.openshift.io/roles", "authorization.openshift.io/rolebindings",
		"image.openshift.io/imagesignatures", "image.openshift.io/imagestreamimports", "image.openshift.io/imagestreammappings",
		"image.openshift.io/imagestreamtags", "image.openshift.io/imagetags",
		"project.openshift.io/projects", "project.openshift.io/projectrequests", "user.openshift.io/useridentitymappings":
		return true
	}
	return false
}

// options requires the options in the body of a deletion to be those of a dry run: the API server ignores the query then.
func options(request *http.Request) string {
	if request.Body == nil || request.Body == http.NoBody {
		return ""
	}
	text, err := io.ReadAll(io.LimitReader(request.Body, maxOptions+1))
	if err := errors.Join(err, request.Body.Close()); err != nil {
		return "its body cannot be read"
	}
	request.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
	request.Body, request.ContentLength, request.TransferEncoding = io.NopCloser(bytes.NewReader(text)), int64(len(text)), nil
	kind, _, err := mime.ParseMediaType(strings.Join(request.Header["Content-Type"], ","))
	if err != nil || kind != runtime.ContentTypeJSON || len(text) > maxOptions {
		return "it is not a dry run, since its body is not a short text in JSON"
	}
	var given metav1.DeleteOptions
	ambiguous, err := json.UnmarshalStrict(text, &given)
	if err != nil || len(ambiguous) > 0 || !slices.Equal(given.DryRun, []string{metav1.DryRunAll}) {
		return "it is not a dry run, since its body does not have exactly " + parameter + ": [" + metav1.DryRunAll + "]"
	}
	return ""
}
