// Package dryrun answers: would the API server accept this write?
//
// Call [New] first, with the identity to impersonate, then a method of [Client], then [AnswerOf] with its error. A
// client reads, and sends server-side dry runs: they pass authorization, admission and validation, and are not stored.
// It cannot send anything else: its innermost transport rejects every other request before it is sent, regardless of
// the surrounding code, retries or redirects.
//
// The server of an API group decides what it stores. Resources whose OpenShift server stores dry runs are rejected; a
// caller must not send requests for aggregated API groups that it does not know.
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
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
	"sigs.k8s.io/json"
)

// ExtraKey is the key of the rehearsal's ID in the extra information on the impersonated user: admission policies and
// the audit log recognize the requests of a rehearsal by it.
const ExtraKey = "preflight.openshift.io/rehearsal"

const (
	// maxRequests bounds the requests of a client and those made from it.
	maxRequests = 5000
	// maxAtOnce bounds those whose response was not read yet.
	maxAtOnce = 8
)

var (
	// ErrNotDryRun is the error of a request that was refused, since it is neither a read nor a dry run of the identity.
	ErrNotDryRun = errors.New("not a read or a dry run")
	// ErrExhausted is the error of a request beyond the 5 000 that a client, and those made from it, send.
	ErrExhausted = errors.New("the 5 000 requests of a rehearsal have been sent")
)

// Identity is whom a client impersonates: User, such as "system:serviceaccount:openshift-cluster-version:default". Rehearsal
// is the ID that is sent as [ExtraKey].
type Identity struct{ User, Rehearsal string }

// Client sends reads and dry runs of one identity. It may be used concurrently.
type Client struct {
	rest   rest.Interface
	base   *rest.Config
	as     Identity
	limits *limits
}

// limits are shared by the clients of a rehearsal.
type limits struct {
	slots chan struct{}
	sent  atomic.Int64
}

// New returns a client of the API server that config reaches. config is not changed; its transports wrap the one that
// rejects writes. It returns an error if the configuration already impersonates: its user must only have the rights of
// that identity.
func New(config *rest.Config, as Identity) (*Client, error) {
	if config.Impersonate.UserName != "" {
		return nil, fmt.Errorf("cannot impersonate %s: the configuration already impersonates %s", as.User, config.Impersonate.UserName)
	}
	base := rest.CopyConfig(config)
	base.QPS, base.RateLimiter = -1, nil // the API server's priority and fairness decides
	return newClient(base, as, &limits{slots: make(chan struct{}, maxAtOnce)})
}

// As returns a client for another user, with the same rehearsal and the same limits.
func (c *Client) As(user string) (*Client, error) {
	return newClient(c.base, Identity{User: user, Rehearsal: c.as.Rehearsal}, c.limits)
}

func newClient(base *rest.Config, as Identity, within *limits) (*Client, error) {
	for _, value := range []string{as.User, as.Rehearsal} {
		if value == "" || value != strings.TrimSpace(value) {
			return nil, fmt.Errorf("cannot impersonate: %q is not a user, or not the ID of a rehearsal", value)
		}
	}
	config := dynamic.ConfigFor(base)
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeJSON, runtime.ContentTypeJSON
	config.GroupVersion, config.APIPath = nil, "/" // each request has its path
	config.Impersonate = rest.ImpersonationConfig{UserName: as.User, Extra: map[string][]string{ExtraKey: {as.Rehearsal}}}
	server, _, unusable := rest.DefaultServerUrlFor(config)
	// The first wrapper is the innermost one: the others, and those for credentials and impersonation, are around it.
	innermost := func(next http.RoundTripper) http.RoundTripper { return newGuard(next, server, as, within) }
	config.WrapTransport = transport.Wrappers(innermost, base.WrapTransport)
	client, err := rest.UnversionedRESTClientFor(config)
	if err := cmp.Or(unusable, err); err != nil {
		return nil, fmt.Errorf("the configuration of the cluster cannot be used: %w", err)
	}
	return &Client{rest: client, base: base, as: as, limits: within}, nil
}

// Get reads an object. The namespace of a cluster-scoped one is empty.
func (c *Client) Get(ctx context.Context, of schema.GroupVersionResource, namespace, name string) (*unstructured.Unstructured, error) {
	return object(ctx, c.request(http.MethodGet, of, namespace).Name(name))
}

// Create asks for the creation of an object in its namespace, and returns what would be stored. The name may be generated.
func (c *Client) Create(
	ctx context.Context, of schema.GroupVersionResource, created *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return object(ctx, c.request(http.MethodPost, of, created.GetNamespace()).Body(created))
}

// Update asks for the replacement of an object, and returns what would be stored.
func (c *Client) Update(
	ctx context.Context, of schema.GroupVersionResource, updated *unstructured.Unstructured,
) (*unstructured.Unstructured, error) {
	return object(ctx, c.request(http.MethodPut, of, updated.GetNamespace()).Name(updated.GetName()).Body(updated))
}

// Delete asks for the deletion of an object.
func (c *Client) Delete(ctx context.Context, of schema.GroupVersionResource, namespace, name string) error {
	// Without a body the API server takes the options from the query.
	return c.request(http.MethodDelete, of, namespace).Name(name).Do(ctx).Error()
}

func (c *Client) request(method string, of schema.GroupVersionResource, namespace string) *rest.Request {
	api := []string{"apis", of.Group, of.Version}
	if of.Group == "" {
		api = []string{"api", of.Version}
	}
	request := c.rest.Verb(method).AbsPath(api...).NamespaceIfScoped(namespace, namespace != "").Resource(of.Resource)
	if method != http.MethodGet {
		request.Param(parameter, metav1.DryRunAll)
	}
	return request
}

// object sends a request whose response is an object.
func object(ctx context.Context, request *rest.Request) (*unstructured.Unstructured, error) {
	var got unstructured.Unstructured
	if err := request.Do(ctx).Into(&got); err != nil {
		return nil, err
	}
	if kind := got.GetKind(); kind == "" || kind == "Status" {
		return nil, fmt.Errorf("the API server did not answer with an object, but with kind %q", kind)
	}
	return &got, nil
}

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
			_ = request.Body.Close() // there was nothing to read
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

// countedBody counts as an open response until it is closed.
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
		return "it does not read an object, a list of objects, or API discovery"
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

// stores reports whether the server of a resource writes other objects for it without marking these writes, at least in
// some versions, as dry runs (openshift-apiserver and oauth-apiserver, pkg/*/apiserver/registry).
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

// options requires that the options in the body of a deletion request a dry run: the API server ignores the query then.
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
