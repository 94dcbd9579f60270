// Package dryrun answers: would the API server accept this write?
//
// Call [New] first, with whom to impersonate, then a method of [Client], then [AnswerOf] with its error. A client reads,
// and asks for server-side dry runs: they pass authorization, admission and validation, and are not stored. It cannot
// send anything else: its innermost transport refuses every other request before it leaves, whatever the code around it,
// a retry or a redirect makes of it.
//
// The server of an API group decides what it stores. Resources of which servers of OpenShift store a dry run are refused;
// a caller does not ask about the groups of aggregated API servers that it does not know.
package dryrun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
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

// New makes a client of the API server that config reaches. config is not changed; its transports are around the one that
// refuses. One that impersonates already is an error: its user is to have no rights but those of that identity.
func New(config *rest.Config, as Identity) (*Client, error) {
	if config.Impersonate.UserName != "" {
		return nil, fmt.Errorf("cannot impersonate %s: the configuration impersonates %s already", as.User, config.Impersonate.UserName)
	}
	base := rest.CopyConfig(config)
	base.QPS, base.RateLimiter = -1, nil // the API server's priority and fairness decides
	return newClient(base, as, &limits{slots: make(chan struct{}, maxAtOnce)})
}

// As makes a client of another user, with the same rehearsal and the same limits.
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
