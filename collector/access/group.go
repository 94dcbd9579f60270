package access

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	rbacv1client "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/retry"
)

// GroupRights are what every ServiceAccount of a namespace may do as a member of its
// groups: the accounts of the namespace, all accounts, and all authenticated users.
type GroupRights struct {
	Namespace string
	// Writes are the write requests, sorted, without those that OpenShift allows every
	// user.
	Writes []Request
	// Secrets are the requests that read Secrets of any name, sorted.
	Secrets []Request
	// Asked counts the access reviews.
	Asked int
	// Unserved are the versions of APIs without a review, because the API server could
	// not list their resources; sorted.
	Unserved []string
}

const (
	registrationGroup = "apiregistration.k8s.io"
	// unknownAccount is the name of a ServiceAccount that does not exist.
	unknownAccount = "preflight-unknown"
	// maxAPIServices bounds the APIServices of one request.
	maxAPIServices = 5000
)

// GroupsNeeds are the requests of Groups, UnguardedGroups and AggregatedGroups to the API
// server.
func GroupsNeeds() []Request {
	return append(WritesNeeds(), Request{Verb: "list", Group: rbacv1.GroupName, Resource: "clusterrolebindings"},
		Request{Verb: "list", Group: registrationGroup, Resource: "apiservices"})
}

// Groups reviews what every ServiceAccount of these namespaces may do, with an account
// that does not exist. The reviews are those of Writes, and of reading Secrets.
func Groups(ctx context.Context, client kubernetes.Interface, namespaces []string) ([]GroupRights, error) {
	audits, unserved, err := groupAudits(ctx, client, namespaces)
	if err != nil {
		return nil, err
	}
	var all []GroupRights
	for _, a := range audits {
		writes, err := a.writes(ctx, a.requests())
		if err != nil {
			return nil, err
		}
		readable, err := a.allowed(ctx, a.account, a.secretReads())
		if err != nil {
			return nil, err
		}
		writes, readable = slices.DeleteFunc(writes, isDefault), essential(readable)
		for _, namespace := range append([]string{a.account.Namespace}, a.same...) {
			all = append(all, GroupRights{
				Namespace: namespace, Writes: a.in(namespace, writes), Secrets: a.in(namespace, readable), Asked: a.reviews, Unserved: unserved,
			})
		}
	}
	slices.SortFunc(all, func(a, b GroupRights) int { return strings.Compare(a.Namespace, b.Namespace) })
	return all, nil
}

// UnguardedGroups is the part of Groups that Unguarded returns, by namespace, with the
// reviews for this part only. The aggregated API groups are those of AggregatedGroups.
func UnguardedGroups(ctx context.Context, client kubernetes.Interface, namespaces, aggregated []string) (map[string][]Request, error) {
	audits, _, err := groupAudits(ctx, client, namespaces)
	if err != nil {
		return nil, err
	}
	all := map[string][]Request{}
	for _, a := range audits {
		unguarded, err := a.writes(ctx, Unguarded(a.requests(), aggregated))
		if err != nil {
			return nil, err
		}
		if unguarded = slices.DeleteFunc(unguarded, isDefault); len(unguarded) == 0 {
			continue
		}
		for _, namespace := range append([]string{a.account.Namespace}, a.same...) {
			all[namespace] = a.in(namespace, unguarded)
		}
	}
	return all, nil
}

// groupAudit is the audit of the accounts of a namespace by their groups.
type groupAudit struct {
	*audit
	// same are the further namespaces in which no binding is for these groups alone, so
	// that the result is the same.
	same []string
}

// in are requests of the audit, for the accounts of another namespace in their own.
func (a groupAudit) in(namespace string, requests []Request) []Request {
	requests = slices.Clone(requests)
	for i := range requests {
		if requests[i].Namespace == a.account.Namespace {
			requests[i].Namespace = namespace
		}
	}
	return requests
}

// groupAudits are the audits of an account that does not exist in each namespace, and
// the versions whose resources the API server could not list. There are hundreds of
// reviews in one audit, so namespaces without bindings for their groups share one.
func groupAudits(ctx context.Context, client kubernetes.Interface, namespaces []string) ([]*groupAudit, []string, error) {
	if len(namespaces) == 0 {
		return nil, nil, nil
	}
	lists, unserved, err := served(client.Discovery())
	if err != nil {
		return nil, nil, err
	}
	bound, err := readGroupBindings(ctx, client.RbacV1())
	if err != nil {
		return nil, nil, err
	}
	var audits []*groupAudit
	var shared *groupAudit
	for _, namespace := range namespaces {
		if shared != nil && !bound.distinct(namespace) {
			shared.same = append(shared.same, namespace)
			continue
		}
		account := types.NamespacedName{Namespace: namespace, Name: unknownAccount}
		each := &groupAudit{audit: &audit{client: client, account: account, lists: lists, namespaces: bound.namespaces(namespace)}}
		audits = append(audits, each)
		if !bound.distinct(namespace) {
			shared = each
		}
	}
	return audits, unserved, nil
}

// groupBindings are the bindings for the groups of ServiceAccounts.
type groupBindings struct {
	// accountsOf has the namespaces in which the group of the accounts of a namespace is
	// bound; "" is the whole cluster.
	accountsOf map[string][]string
	// allAccounts are the namespaces in which all accounts or all users are bound.
	allAccounts []string
}

func readGroupBindings(ctx context.Context, client rbacv1client.RbacV1Interface) (groupBindings, error) {
	var bound groupBindings
	note := func(namespace string, subjects []rbacv1.Subject, _ rbacv1.RoleRef) {
		for _, subject := range subjects {
			of, isGroup := strings.CutPrefix(subject.Name, "system:serviceaccounts:")
			switch {
			case subject.Kind != rbacv1.GroupKind:
			case isGroup:
				bound.accountsOf[of] = append(bound.accountsOf[of], namespace)
			case namespace != "" && slices.Contains([]string{"system:serviceaccounts", "system:authenticated"}, subject.Name):
				bound.allAccounts = append(bound.allAccounts, namespace)
			}
		}
	}
	err := retry.Do(ctx, func(ctx context.Context) error {
		bound = groupBindings{accountsOf: map[string][]string{}}
		return eachBinding(ctx, client, note)
	})
	return bound, err
}

// distinct is true for a namespace whose accounts may have other permissions by their
// groups than those of other namespaces, or whose objects are open to all of them.
func (b groupBindings) distinct(namespace string) bool {
	return len(b.accountsOf[namespace]) > 0 || slices.Contains(b.allAccounts, namespace)
}

// namespaces are those in which the accounts of a namespace may have permissions by
// their groups: its own, and those with a RoleBinding for the groups.
func (b groupBindings) namespaces(of string) []string {
	all := slices.Concat([]string{of}, b.accountsOf[of], b.allAccounts)
	all = slices.DeleteFunc(all, func(namespace string) bool { return namespace == "" })
	slices.Sort(all)
	return slices.Compact(all)
}

// secretReads are the requests that read Secrets of any name.
func (a *audit) secretReads() []Request {
	var reads []Request
	for _, namespace := range append([]string{""}, a.namespaces...) {
		reads = append(reads, Verbs(Request{Resource: secrets, Namespace: namespace}, "get", "list", "watch")...)
	}
	return reads
}

// isDefault is true for the write requests that OpenShift allows every authenticated
// user: webhooks of builds, which require the secret of the build, the deletion of OAuth
// tokens by their name, which is a hash of the token, and requests for projects. It is
// also true for requests that store nothing.
func isDefault(request Request) bool {
	switch request.Group {
	case "build.openshift.io":
		return request.Verb == "create" && request.Resource == "buildconfigs" && request.Subresource == "webhooks"
	case "oauth.openshift.io":
		return request.Verb == "delete" && slices.Contains([]string{"oauthaccesstokens", "oauthauthorizetokens"}, request.Resource)
	case "project.openshift.io":
		return request.Verb == "create" && request.Resource == "projectrequests"
	}
	return storesNothing(request)
}

// storesNothing is true for resources that are created and never stored: reviews, the
// statistics of a kubelet, which it serves for POST too, and the defaults of a virtual
// machine, which KubeVirt allows the role view.
func storesNothing(request Request) bool {
	switch request.Group {
	case "authorization.k8s.io", "authentication.k8s.io", "authorization.openshift.io", "security.openshift.io":
		return strings.HasSuffix(request.Resource, "reviews")
	case kubeVirtConnections:
		return request.Resource == "expand-vm-spec"
	case "":
		return request.Resource == "nodes" && request.Subresource == "stats"
	}
	return false
}

// Unguarded returns the write requests that no admission policy of the API server can
// deny: impersonation, since the policy receives the impersonated user; changes of the
// admission configuration, which Kubernetes exempts from policies; connections to
// kubelets, which have no admission; writes to these aggregated API groups, whose
// servers have their own admission; and the permission to grant any of them. An
// asterisk in a request is a wildcard.
func Unguarded(writes []Request, aggregated []string) []Request {
	var unguarded []Request
	for _, request := range writes {
		if isUnguarded(request, aggregated) {
			unguarded = append(unguarded, request)
		}
	}
	return unguarded
}

func isUnguarded(request Request, aggregated []string) bool {
	is := func(value string, wanted ...string) bool { return value == "*" || slices.Contains(wanted, value) }
	switch {
	case is(request.Verb, "impersonate", "bind", "escalate"):
		return true
	case is(request.Group, "admissionregistration.k8s.io"), is(request.Group, aggregated...):
		return true
	case is(request.Group, "") && is(request.Resource, "nodes"):
		return is(request.Subresource, "proxy", "checkpoint") || request.Resource == "*"
	}
	return false
}

// Writing returns the write requests that rules allow, as the rules name them: with
// their wildcards and without a namespace. Sorted. Requests that store nothing are not
// included; connections are.
func Writing(rules []rbacv1.PolicyRule) []Request {
	var writes []Request
	for _, rule := range rules {
		for _, group := range rule.APIGroups {
			for _, resource := range rule.Resources {
				writes = append(writes, writing(group, resource, rule.Verbs)...)
			}
		}
	}
	return essential(writes)
}

func writing(group, resource string, verbs []string) []Request {
	var writes []Request
	request := Request{Group: group}
	request.Resource, request.Subresource, _ = strings.Cut(resource, "/")
	if storesNothing(request) {
		return nil
	}
	connects := Connects(group, resource) && (request.Resource != "nodes" || request.Subresource == "proxy")
	for _, request.Verb = range verbs {
		if len(readVerbs([]string{request.Verb})) != 1 || connects && request.Verb == "get" {
			writes = append(writes, request)
		}
	}
	return writes
}

// AggregatedGroups reads the API groups that other servers serve, sorted.
func AggregatedGroups(ctx context.Context, client rest.Interface) ([]string, error) {
	body, err := retry.Get(ctx, func(ctx context.Context) ([]byte, error) {
		return client.Get().AbsPath("/apis/"+registrationGroup+"/v1/apiservices").
			VersionedParams(&metav1.ListOptions{Limit: maxAPIServices}, metav1.ParameterCodec).
			SetHeader("Accept", runtime.ContentTypeJSON).Do(ctx).Raw()
	})
	if err != nil {
		return nil, fmt.Errorf("could not list APIServices: %w", err)
	}
	var services struct {
		Metadata metav1.ListMeta `json:"metadata"`
		Items    []struct {
			Spec struct {
				Group   string    `json:"group"`
				Service *struct{} `json:"service"`
			} `json:"spec"`
		} `json:"items"`
	}
	if err := json.Unmarshal(body, &services); err != nil {
		return nil, fmt.Errorf("could not parse the list of APIServices: %w", err)
	}
	if services.Metadata.Continue != "" {
		return nil, fmt.Errorf("the API server has more than %d APIServices", maxAPIServices)
	}
	var groups []string
	for _, item := range services.Items {
		if item.Spec.Service != nil {
			groups = append(groups, item.Spec.Group)
		}
	}
	slices.Sort(groups)
	return slices.Compact(groups), nil
}
