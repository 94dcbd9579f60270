package conformance

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/openshift/update-preflight/runner/launch"
)

// account is what the API server says of the identity of a check.
type account struct {
	user  string
	asked int
	// writes are the requests that it may make and a stranger may not.
	writes []string
	// reads is true when a binding of the manifest gives it rights.
	reads bool
}

// question is a request that changes something.
type question = authorizationv1.ResourceAttributes

// lookAtAccounts asks what the check's accounts may do beyond what any account
// may, with the copies of roles and bindings that the attempt made.
func (s *session) lookAtAccounts(ctx context.Context, plan launch.Plan) error {
	_, lists, err := s.Kubernetes.Discovery().ServerGroupsAndResources()
	if err != nil {
		return fmt.Errorf("could not find out what the API server serves: %w", err)
	}
	questions := questions(lists, namespacesOf(plan))
	for _, check := range plan.Checks {
		name := cmp.Or(check.Job.Spec.Template.Spec.ServiceAccountName, "default")
		may, err := s.may(ctx, check.Job.Namespace, name, questions)
		if err != nil {
			return err
		}
		if may, err = s.beyondStrangers(ctx, check.Job.Namespace, may); err != nil {
			return err
		}
		found := account{user: userName(check.Job.Namespace, name), asked: len(questions), reads: bound(plan, check.Job.Namespace, name)}
		for _, request := range may {
			found.writes = append(found.writes, describe(request))
		}
		slices.Sort(found.writes)
		s.mutex.Lock()
		s.accounts[check.Name] = found
		s.mutex.Unlock()
	}
	return nil
}

// beyondStrangers leaves out what an account may that nobody has heard of: a
// cluster may let everybody ask for a project.
func (s *session) beyondStrangers(ctx context.Context, namespace string, may []question) ([]question, error) {
	everybody, err := s.may(ctx, namespace, "preflight-stranger-"+s.id, may)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(may, func(request question) bool { return slices.Contains(everybody, request) }), nil
}

// questions are all writing requests to all resources, in all namespaces at
// once and in each of some. A resource is asked about once, in whichever of its
// versions.
func questions(lists []*metav1.APIResourceList, namespaces []string) []question {
	seen := map[question]bool{}
	for _, list := range lists {
		group, _, found := strings.Cut(list.GroupVersion, "/")
		if !found {
			group = "" // the core group has a version only
		}
		for _, resource := range list.APIResources {
			for _, request := range in(resource, namespaces, writes(group, resource)) {
				seen[request] = true
			}
		}
	}
	return slices.Collect(maps.Keys(seen))
}

// in are the requests, and where the resource has namespaces also those to each
// of some.
func in(resource metav1.APIResource, namespaces []string, requests []question) []question {
	all := slices.Clone(requests)
	if !resource.Namespaced {
		return all
	}
	for _, request := range requests {
		for _, namespace := range namespaces {
			request.Namespace = namespace
			all = append(all, request)
		}
	}
	return all
}

// writes are the requests that change a resource. Those of the reviews are
// questions to the API server, which keeps nothing of them.
func writes(group string, resource metav1.APIResource) []question {
	if group == "authorization.k8s.io" || group == "authentication.k8s.io" {
		return nil
	}
	name, subresource, _ := strings.Cut(resource.Name, "/")
	var requests []question
	for _, verb := range []string{"create", "update", "patch", "delete", "deletecollection"} {
		if slices.Contains(resource.Verbs, verb) {
			requests = append(requests, question{Verb: verb, Group: group, Resource: name, Subresource: subresource})
		}
	}
	return requests
}

// may returns those of the requests that a ServiceAccount is allowed.
func (s *session) may(ctx context.Context, namespace, name string, questions []question) ([]question, error) {
	const parallel = 32
	allowed := make([]bool, len(questions))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i := range questions {
		group.Go(func() error {
			answer, err := s.Kubernetes.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
				Spec: authorizationv1.SubjectAccessReviewSpec{
					User:               userName(namespace, name),
					Groups:             []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
					ResourceAttributes: &questions[i],
				},
			}, metav1.CreateOptions{})
			if err != nil {
				return fmt.Errorf("could not ask what %s may do: %w", userName(namespace, name), err)
			}
			allowed[i] = answer.Status.Allowed
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	var may []question
	for i, request := range questions {
		if allowed[i] {
			may = append(may, request)
		}
	}
	return may, nil
}

func userName(namespace, name string) string {
	return "system:serviceaccount:" + namespace + ":" + name
}

func describe(request question) string {
	resource := request.Resource
	if request.Subresource != "" {
		resource += "/" + request.Subresource
	}
	if request.Group != "" {
		resource += "." + request.Group
	}
	if request.Namespace == "" {
		return request.Verb + " " + resource
	}
	return request.Verb + " " + resource + " in namespace " + request.Namespace
}
