package access

import (
	"context"
	"encoding/json"
	"regexp"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/words"
)

// Anonymous is the user of a request without credentials.
const Anonymous = "system:anonymous"

// maxUser bounds the name of a user, in bytes.
const maxUser = 512

// User is the name that the API server gives to the user of a client, such as
// "system:serviceaccount:NAMESPACE:NAME"; empty where it states none. Releases before 4.15 serve no
// SelfSubjectReview, and state it as the User "~" of OpenShift.
func User(ctx context.Context, client kubernetes.Interface) string {
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	switch {
	case err == nil:
		return printable(review.Status.UserInfo.Username)
	case apierrors.IsNotFound(err):
		return openShiftUser(ctx, client)
	}
	return Refused(err)
}

func openShiftUser(ctx context.Context, client kubernetes.Interface) string {
	text, err := client.AuthenticationV1().RESTClient().Get().AbsPath("/apis/user.openshift.io/v1/users/~").DoRaw(ctx)
	if err != nil {
		return Refused(err)
	}
	var user metav1.PartialObjectMetadata
	if json.Unmarshal(text, &user) != nil {
		return ""
	}
	return printable(user.Name)
}

var refusal = regexp.MustCompile(`is forbidden: User "([^"]+)" cannot `)

// Refused is the user whose request an API server refused, by the text of the error; empty for another error.
func Refused(err error) string {
	if !apierrors.IsForbidden(err) {
		return ""
	}
	match := refusal.FindStringSubmatch(err.Error())
	if match == nil {
		return ""
	}
	return printable(match[1])
}

// printable is a name that may be printed as it is; empty for another one, which a command would
// bind roles to under another name.
func printable(name string) string {
	if len(name) > maxUser || words.Line(name, maxUser) != name {
		return ""
	}
	return name
}

// Subject is a user as the subject of a binding, as "user:NAME" or "serviceaccount:NAMESPACE:NAME". It is empty
// for a user who is unknown or has no credentials: what is bound to that one is bound to all users.
func Subject(user string) string {
	account, isAccount := strings.CutPrefix(user, "system:serviceaccount:")
	switch {
	case user == "", user == Anonymous:
		return ""
	case isAccount && strings.Count(account, ":") == 1:
		return "serviceaccount:" + account
	}
	return "user:" + user
}
