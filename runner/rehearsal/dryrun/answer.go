package dryrun

import (
	"cmp"
	"context"
	"errors"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/words"
)

// Outcome is the result of a write's dry run.
type Outcome string

// The outcomes of a dry run.
const (
	Accepted Outcome = "Accepted" // the API server would store it
	Refused  Outcome = "Refused"  // the API server would not store it
	NotAsked Outcome = "NotAsked" // the API server did not evaluate it, so nothing is known
)

// The kinds of what refuses a write, or prevents its evaluation.
const (
	KindAPIServer        = "APIServer"  // its validation, its other admission plugins, its state
	KindConnection       = "Connection" // what is between this program and the API server
	KindLimitRange       = "LimitRange"
	KindMutatingPolicy   = "MutatingAdmissionPolicy"
	KindPodSecurity      = "PodSecurity"
	KindQuota            = "Quota"     // ResourceQuota or ClusterResourceQuota: the API server writes the same for both
	KindRBAC             = "RBAC"      // the authorizer
	KindRehearsal        = "Rehearsal" // the rules and the limits of this package
	KindSCC              = "SecurityContextConstraints"
	KindValidatingPolicy = "ValidatingAdmissionPolicy"
	KindWebhook          = "Webhook"
)

// maxMessage bounds a message, in bytes.
const maxMessage = 500

// Answer is the answer of an API server to a write.
type Answer struct {
	Outcome Outcome
	// By names the component that rejects or does not evaluate it, such as: webhook "x.example.com"; empty if it is
	// accepted.
	By string
	// Kind is the kind of By, one of the constants.
	Kind string
	// Message is the API server's, on one line.
	Message string
	// Temporary reports whether the same question may soon have another answer.
	Temporary bool
}

// AnswerOf returns the answer in the error of a [Client]'s method: nil means accepted, and an error that is not
// understood means that the write was not evaluated.
func AnswerOf(err error) Answer {
	if err == nil {
		return Answer{Outcome: Accepted}
	}
	answer, message := Answer{Outcome: NotAsked, Kind: KindConnection, By: connection}, err.Error()
	var status apierrors.APIStatus
	switch {
	case errors.Is(err, ErrNotDryRun), errors.Is(err, ErrExhausted):
		answer.Kind, answer.By = KindRehearsal, "the rehearsal"
	case meta.IsNoMatchError(err):
		answer.Kind, answer.By = KindAPIServer, server
	case errors.As(err, &status):
		answer, message = answerOf(status.Status()), cmp.Or(status.Status().Message, message)
	}
	answer.Temporary = answer.Temporary || retry.Temporary(err) && !errors.Is(err, context.Canceled)
	answer.Message = shortened(message)
	return answer
}

// shortened is a message on one line, without the middle of a long one: the API server writes the whole value of a field between its
// name and what is wrong with it.
func shortened(message string) string {
	const most = 64 << 10
	line := words.Line(message, most)
	if len(line) <= maxMessage {
		return line
	}
	return words.Cut(line, maxMessage/2) + words.Last(line, maxMessage/2)
}

// answerOf is the answer that a status is. Reviewers are named by the beginning of the message, which is the API server's:
// what follows is in the words of others, who could write the text of another reviewer.
func answerOf(said metav1.Status) Answer {
	message, err := said.Message, &apierrors.StatusError{ErrStatus: said}
	if apierrors.IsUnexpectedServerError(err) { // not in the words of an API server
		return Answer{Outcome: NotAsked, Kind: KindConnection, By: connection}
	}
	if said.Details != nil { // users choose the names before a reason, so they are not searched either
		resource := schema.GroupResource{Group: said.Details.Group, Resource: said.Details.Kind}
		before := apierrors.NewForbidden(resource, said.Details.Name, errors.New("")).ErrStatus.Message
		if reason, ok := strings.CutPrefix(message, before); ok {
			message = forbidden + reason
		}
	}
	for _, each := range texts() {
		expression := regexp.MustCompile(`\A` + each.begins)
		if groups := expression.FindStringSubmatchIndex(message); groups != nil {
			by := expression.ExpandString(nil, each.by, message, groups)
			return Answer{Outcome: each.outcome, Kind: each.kind, By: strings.ReplaceAll(string(by), "'", `"`), Temporary: each.temporary}
		}
	}
	answer := Answer{Outcome: NotAsked, Kind: KindAPIServer, By: server}
	switch {
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsInternalError(err):
		answer.Temporary = true
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err),
		apierrors.IsMethodNotSupported(err), apierrors.IsRequestEntityTooLargeError(err):
		answer.Outcome = Refused
	}
	return answer
}

const (
	server     = "the API server"
	connection = "the connection to the API server"

	forbidden = "forbidden: " // begins a forbidden request without a resource
	internal  = "Internal error occurred: "
	webhook   = `webhook ("[^"]+")`
	policy    = `('[^']+'(?: with binding '[^']+')?|"[^"]+") denied request: `
	user      = `[Uu]ser "(?:[^"\\]|\\.)*" `
)

// text is how the API server begins a message, as a regular expression, and what it says. by has its groups.
type text struct {
	begins    string
	outcome   Outcome
	kind, by  string
	temporary bool
}

// texts are taken from k8s.io/apiserver (pkg/admission/plugin, pkg/util/webhook, pkg/endpoints/handlers/responsewriters),
// k8s.io/pod-security-admission, k8s.io/kubernetes (plugin/pkg/admission/limitranger, pkg/registry/rbac), and
// github.com/openshift/apiserver-library-go (pkg/securitycontextconstraints/sccadmission).
func texts() []text {
	return []text{
		{`admission ` + webhook + ` denied the request(: | without explanation\z)`, Refused, KindWebhook, "webhook ${1}", false},
		{`admission ` + webhook + ` does not support dry run\z`, NotAsked, KindWebhook, "webhook ${1}", false},
		// Only a dry run needs to know its side effects.
		{internal + `failed calling ` + webhook + `: Webhook SideEffects is nil\z`, NotAsked, KindWebhook, "webhook ${1}", false},
		{internal + `failed calling ` + webhook + `[:;] `, Refused, KindWebhook, "webhook ${1}", true},
		{internal + `admission ` + webhook + ` attempted to modify the object, `, Refused, KindWebhook, "webhook ${1}", false},
		{`policy ` + policy, Refused, KindMutatingPolicy, "MutatingAdmissionPolicy ${1}", false},
		{forbidden + `ValidatingAdmissionPolicy ` + policy, Refused, KindValidatingPolicy, "ValidatingAdmissionPolicy ${1}", false},
		{forbidden + `exceeded quota: ([^,]+), requested: `, Refused, KindQuota, `quota "${1}"`, false},
		{forbidden + `failed quota: ([^:]+): `, Refused, KindQuota, `quota "${1}"`, false},
		{forbidden + `status unknown for quota: ([^,]+), resources: `, Refused, KindQuota, `quota "${1}"`, true},
		{forbidden + `insufficient quota to consume: `, Refused, KindQuota, "a missing quota", false},
		{internal + `resource quota evaluation timed out\z`, NotAsked, KindQuota, "a quota", true},
		{forbidden + `\[?(maximum|minimum) \S+ usage per \S+ is `, Refused, KindLimitRange, "LimitRange", false},
		{forbidden + `\[?\S+ max limit to request ratio per \S+ is `, Refused, KindLimitRange, "LimitRange", false},
		{forbidden + `violates PodSecurity "`, Refused, KindPodSecurity, "Pod Security", false},
		{forbidden + `unable to validate against any security context constraint: `, Refused, KindSCC, KindSCC, false},
		{forbidden + `no SecurityContextConstraints`, Refused, KindSCC, KindSCC, false},
		{forbidden + `securitycontextconstraints\.security\.openshift\.io (cache|required check) `, NotAsked, KindSCC, KindSCC, true},
		{forbidden + user + `cannot impersonate\S* resource `, NotAsked, KindRBAC, KindRBAC, false},
		{forbidden + user + `cannot \S+ (resource|path) `, Refused, KindRBAC, KindRBAC, false},
		{forbidden + user + `\(groups=.*\) is attempting to grant RBAC permissions not currently held:`, Refused, KindRBAC, KindRBAC, false},
		{forbidden + `not yet ready to handle request\z`, NotAsked, KindAPIServer, server, true},
	}
}
