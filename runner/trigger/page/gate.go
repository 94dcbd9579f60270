package page

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-logr/logr"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/access"
	"github.com/openshift/update-preflight/runner/trigger/api/v1alpha1"
)

// Role is the ClusterRole of the manifests with [Permission].
const Role = "update-preflight-reader"

// Permission is the request that a user must be allowed to make to see the page.
func Permission() access.Request {
	return access.Request{Verb: "get", Group: v1alpha1.Group, Version: "*", Resource: v1alpha1.Resource}
}

func described() string { return access.Describe(Permission()) }

// Needs are the permissions to review users, which the controller needs beside its own where it serves the page.
func Needs() access.Needs {
	return access.Needs{Required: []access.Request{
		{Verb: "create", Group: authenticationv1.GroupName, Resource: "tokenreviews"},
		{Verb: "create", Group: authorizationv1.GroupName, Resource: "subjectaccessreviews"},
	}}
}

// tokenOf is the token of a request; empty for none, or several.
func tokenOf(r *http.Request) string {
	stated := r.Header.Values("Authorization")
	if len(stated) != 1 {
		return ""
	}
	if _, password, ok := r.BasicAuth(); ok {
		return password
	}
	scheme, token, _ := strings.Cut(stated[0], " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// gate asks the API server who may see the page. k8s.io/apiserver's delegating authenticator does not distinguish a token
// that is rejected from a review that failed.
type gate struct {
	client kubernetes.Interface
}

// decision is who has a token, and whether that user may see the page. The user is empty for a token that is rejected.
type decision struct {
	user    string
	allowed bool
}

// decide asks for a decision; an error is none.
func (g gate) decide(ctx context.Context, token string) (decision, error) {
	// client-go logs the content of requests at high verbosity, and this one has the token.
	reviewed, err := g.client.AuthenticationV1().TokenReviews().Create(logr.NewContext(ctx, logr.Discard()),
		&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, fmt.Errorf("could not review a token: %w", err)
	}
	user := reviewed.Status.User
	if !reviewed.Status.Authenticated || user.Username == "" {
		return decision{}, nil
	}
	extra := map[string]authorizationv1.ExtraValue{}
	for name, values := range user.Extra {
		extra[name] = authorizationv1.ExtraValue(values)
	}
	permission := Permission()
	allowed, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: &permission, User: user.Username, UID: user.UID, Groups: user.Groups, Extra: extra},
	}, metav1.CreateOptions{})
	if err != nil {
		return decision{}, fmt.Errorf("could not review the permission of %q: %w", user.Username, err)
	}
	return decision{user: user.Username, allowed: allowed.Status.Allowed && !allowed.Status.Denied}, nil
}
