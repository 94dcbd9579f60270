package dryrun_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/plugin/policy/generic"
	"k8s.io/apiserver/pkg/admission/plugin/policy/mutating"
	"k8s.io/apiserver/pkg/admission/plugin/policy/validating"
	webhookerrors "k8s.io/apiserver/pkg/admission/plugin/webhook/errors"
	apiuser "k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	webhookutil "k8s.io/apiserver/pkg/util/webhook"
	podsecurity "k8s.io/pod-security-admission/admission"
	podsecurityconfig "k8s.io/pod-security-admission/admission/api"
	podsecurityapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/metrics"
	podsecuritypolicy "k8s.io/pod-security-admission/policy"

	"github.com/openshift/update-preflight/runner/rehearsal/dryrun"
)

// answered is an error, and the answer that it is.
type answered struct {
	reason    string
	err       error
	outcome   dryrun.Outcome
	kind, by  string
	temporary bool
	// message is a part of it; empty for that of the error.
	message string
}

func TestAnswers(t *testing.T) {
	for name, rows := range map[string]map[string]answered{
		"webhooks": webhooks(), "policies": policies(t), "plugins": plugins(t), "authorizer": authorizers(), "API server": apiServer(),
		"spoofed": spoofed(t), "connection": connections(),
	} {
		for title, row := range rows {
			t.Run(name+"/"+title, func(t *testing.T) {
				row.check(t, row.err)
				var status apierrors.APIStatus
				if errors.As(row.err, &status) {
					row.check(t, sentBack(t, status.Status()))
				}
			})
		}
	}
}

func (a answered) check(t *testing.T, err error) {
	t.Helper()
	got := dryrun.AnswerOf(err)
	if got.Outcome != a.outcome || got.Kind != a.kind || got.By != a.by || got.Temporary != a.temporary {
		t.Errorf("%s: %q: answer %+v", a.reason, err, got)
	}
	if err != nil && a.message == "" && got.Message != err.Error() || !strings.Contains(got.Message, a.message) {
		t.Errorf("%s: %q: message %q", a.reason, err, got.Message)
	}
}

// sentBack is the error of a client to which a server has sent a status.
func sentBack(t *testing.T, status metav1.Status) error {
	t.Helper()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(int(status.Code))
		if err := json.NewEncoder(w).Encode(status); err != nil {
			t.Error(err)
		}
	})
	_, err := connect(t, s.config()).Update(t.Context(), configMaps, configMap("c"))
	return err
}

const (
	accepted, refused = dryrun.Accepted, dryrun.Refused
	webhook           = `webhook "x.example.com"`
	hook              = "x.example.com"
)

func denied(message string, code int32) error {
	return webhookerrors.ToStatusErr(hook, &metav1.Status{Message: message, Code: code})
}

func uncalled(reason error) error {
	return apierrors.NewInternalError(&webhookutil.ErrCallingWebhook{WebhookName: hook, Reason: reason})
}

func webhooks() map[string]answered {
	return map[string]answered{
		"denied": {"it says so", denied("not now", 403), refused, dryrun.KindWebhook, webhook, false, ""},
		"reason": {
			"it has no message", webhookerrors.ToStatusErr(hook, &metav1.Status{Reason: "NotFound", Code: 404}),
			refused, dryrun.KindWebhook, webhook, false, "NotFound",
		},
		"nothing": {
			"it has no result", webhookerrors.ToStatusErr(hook, nil), refused, dryrun.KindWebhook, webhook, false, "without explanation",
		},
		"conflict": {"the code is its own", denied("held", 409), refused, dryrun.KindWebhook, webhook, false, ""},
		"busy":     {"it will have another answer", denied("busy", 429), refused, dryrun.KindWebhook, webhook, true, ""},
		"not called": {
			"failurePolicy Fail", uncalled(errors.New(`failed to call webhook: Post "https://x": EOF`)),
			refused, dryrun.KindWebhook, webhook, true, "",
		},
		"no details": {"failurePolicy Fail", uncalled(nil), refused, dryrun.KindWebhook, webhook, true, ""},
		"no dry run": {
			"it was not called", webhookerrors.NewDryRunUnsupportedErr(hook), dryrun.NotAsked, dryrun.KindWebhook, webhook, false, "",
		},
		"side effects": {
			"only a dry run needs them", uncalled(errors.New("Webhook SideEffects is nil")),
			dryrun.NotAsked, dryrun.KindWebhook, webhook, false, "",
		},
		"patch of a deletion": {
			"it patches nothing", apierrors.NewInternalError(fmt.Errorf(
				"admission webhook %q attempted to modify the object, which is not supported for this operation", hook)),
			refused, dryrun.KindWebhook, webhook, false, "",
		},
	}
}

func policies(t *testing.T) map[string]answered {
	t.Helper()
	const bound = `ValidatingAdmissionPolicy "p.example.com" with binding "b.example.com"`
	mutated := func(binding generic.BindingAccessor) error {
		made := &mutating.Policy{ObjectMeta: metav1.ObjectMeta{Name: "p.example.com"}}
		text := generic.PolicyError{
			Policy: mutating.NewMutatingAdmissionPolicyAccessor(made), Binding: binding, Message: errors.New("no such key: spec"),
		}.Error()
		err := asStatus(admission.NewForbidden(attributes(configMap("c")), errors.New("admission request denied by policy")))
		err.ErrStatus.Message, err.ErrStatus.Reason = text, metav1.StatusReasonInvalid // as pkg/admission/plugin/policy/generic does
		return err
	}
	made := &mutating.PolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: "b.example.com"}}
	binding := mutating.NewMutatingAdmissionPolicyBindingAccessor(made)
	return map[string]answered{
		"validating": {"it says so", validated(t, "too many", "", nil), refused, dryrun.KindValidatingPolicy, bound, false, ""},
		"unauthorized": {
			"the reason is its own", validated(t, "no", metav1.StatusReasonUnauthorized, nil),
			refused, dryrun.KindValidatingPolicy, bound, false, "",
		},
		"not configured": {
			"no binding was read", validated(t, "", "", errors.New("no such kind")),
			refused, dryrun.KindValidatingPolicy, `ValidatingAdmissionPolicy "p.example.com"`, false, "",
		},
		"mutating": {
			"it says so", mutated(binding),
			refused, dryrun.KindMutatingPolicy, `MutatingAdmissionPolicy "p.example.com" with binding "b.example.com"`, false, "",
		},
		"mutating, not configured": {
			"no binding was read", mutated(nil), refused, dryrun.KindMutatingPolicy, `MutatingAdmissionPolicy "p.example.com"`, false, "",
		},
	}
}

func asStatus(err error) *apierrors.StatusError {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		return &apierrors.StatusError{}
	}
	return status
}

// attributes are those of the creation of an object.
func attributes(of *unstructured.Unstructured) admission.Attributes {
	kind, resource := of.GroupVersionKind(), schema.GroupVersionResource{Version: "v1", Resource: strings.ToLower(of.GetKind()) + "s"}
	options := &metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
	return admission.NewAttributesRecord(of, nil, kind, of.GetNamespace(), of.GetName(), resource, "", admission.Create, options, true, nil)
}

// validated is the error of the API server's plugin for a ValidatingAdmissionPolicy that denies with a message and a reason; with
// an error, for one that cannot be used.
func validated(t *testing.T, message string, reason metav1.StatusReason, configuration error) error {
	t.Helper()
	hook := validating.PolicyHook{
		Policy: &validating.Policy{ObjectMeta: metav1.ObjectMeta{Name: "p.example.com"}},
		Bindings: []*validating.PolicyBinding{{
			ObjectMeta: metav1.ObjectMeta{Name: "b.example.com"},
			Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
				ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
			},
		}},
		Evaluator: deny{message: message, reason: reason}, ConfigurationError: configuration,
	}
	err := validating.NewDispatcher(nil, matchAll{}).Dispatch(t.Context(), attributes(configMap("c")), nil, []validating.PolicyHook{hook})
	if err == nil {
		t.Fatal("the policy does not deny")
	}
	return err
}

type deny struct {
	message string
	reason  metav1.StatusReason
}

func (deny) CompileError() error { return nil }

func (d deny) Validate(
	context.Context, schema.GroupVersionResource, *admission.VersionedAttributes, runtime.Object, *corev1.Namespace, int64,
	authorizer.UnconditionalAuthorizer,
) validating.ValidateResult {
	denial := validating.PolicyDecision{Action: validating.ActionDeny, Evaluation: validating.EvalDeny, Message: d.message, Reason: d.reason}
	return validating.ValidateResult{Decisions: []validating.PolicyDecision{denial}}
}

type matchAll struct{}

func (matchAll) ValidateInitialization() error { return nil }

func (matchAll) DefinitionMatches(
	a admission.Attributes, _ admission.ObjectInterfaces, _ generic.PolicyAccessor,
) (bool, schema.GroupVersionResource, schema.GroupVersionKind, error) {
	return true, a.GetResource(), a.GetKind(), nil
}

func (matchAll) BindingMatches(admission.Attributes, admission.ObjectInterfaces, generic.BindingAccessor) (bool, error) {
	return true, nil
}

func (matchAll) GetNamespace(context.Context, string) (*corev1.Namespace, error) {
	return &corev1.Namespace{}, nil
}

// forbid is an error of an admission plugin for a pod.
func forbid(format string, a ...any) error {
	pod := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Pod"}}
	pod.SetNamespace("ns")
	pod.SetGenerateName("p-")
	return admission.NewForbidden(attributes(pod), fmt.Errorf(format, a...))
}

func plugins(t *testing.T) map[string]answered {
	t.Helper()
	terminating := asStatus(forbid("unable to create new content in namespace ns because it is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	const quota, scc = `quota "q"`, "SecurityContextConstraints"
	several := utilerrors.NewAggregate([]error{errors.New("maximum cpu usage per Pod is 1, but limit is 2"), errors.New("more")})
	return map[string]answered{
		"quota": {
			"it is exceeded", forbid("exceeded quota: %s, requested: pods=1, used: pods=5, limited: pods=5", "q"),
			refused, dryrun.KindQuota, quota, false, "",
		},
		"quota, compute": {
			"it must be specified", forbid("failed quota: %s: %v", "q", errors.New("must specify limits.cpu for: c")),
			refused, dryrun.KindQuota, quota, false, "",
		},
		"quota, unknown": {
			"its controller counts", forbid("status unknown for quota: %s, resources: %s", "q", "pods"),
			refused, dryrun.KindQuota, quota, true, "",
		},
		"quota, none": {
			"consumption is restricted", forbid("insufficient quota to consume: %v", "pods"),
			refused, dryrun.KindQuota, "a missing quota", false, "",
		},
		"quota, timeout": {
			"it was not evaluated", apierrors.NewInternalError(errors.New("resource quota evaluation timed out")),
			dryrun.NotAsked, dryrun.KindQuota, "a quota", true, "",
		},
		"limits, maximum": {
			"it is exceeded", forbid("maximum cpu usage per Container is 1, but limit is 2"),
			refused, dryrun.KindLimitRange, "LimitRange", false, "",
		},
		"limits, minimum": {
			"there is no request", forbid("minimum memory usage per Pod is 1Mi.  No request is specified"),
			refused, dryrun.KindLimitRange, "LimitRange", false, "1Mi. No request",
		},
		"limits, ratio": {
			"it is exceeded", forbid("cpu max limit to request ratio per Container is 2, but provided ratio is 4.000000"),
			refused, dryrun.KindLimitRange, "LimitRange", false, "",
		},
		"limits, several": {"two are exceeded", forbid("%w", several), refused, dryrun.KindLimitRange, "LimitRange", false, ""},
		"Pod Security": {
			"a privileged container", privileged(t),
			refused, dryrun.KindPodSecurity, "Pod Security", false, `violates PodSecurity "restricted:latest": `,
		},
		"SCC": {
			"none fits", forbid("unable to validate against any security context constraint: %v", "[provider]"),
			refused, dryrun.KindSCC, scc, false, "",
		},
		"SCC, none": {"there are none", forbid("no SecurityContextConstraints found in cluster"), refused, dryrun.KindSCC, scc, false, ""},
		"SCC, starting": {
			"they were not read", forbid("securitycontextconstraints.security.openshift.io cache is not synchronized"),
			dryrun.NotAsked, dryrun.KindSCC, scc, true, "",
		},
		"starting": {
			"webhooks were not read", forbid("not yet ready to handle request"), dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"other": {
			"it is not recognized", forbid("no PriorityClass with name x was found"), refused, dryrun.KindAPIServer, byServer, false, "",
		},
		"terminating": {"the namespace is deleted", terminating, refused, dryrun.KindAPIServer, byServer, false, ""},
	}
}

// privileged is the error of the Pod Security plugin for a pod that the level restricted does not allow.
func privileged(t *testing.T) error {
	t.Helper()
	evaluator, err := podsecuritypolicy.NewEvaluator(podsecuritypolicy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	level := podsecurityconfig.PodSecurityDefaults{
		Enforce: "restricted", EnforceVersion: "latest", Audit: "privileged", AuditVersion: "latest", Warn: "privileged", WarnVersion: "latest",
	}
	plugin := &podsecurity.Admission{
		Configuration: &podsecurityconfig.PodSecurityConfiguration{Defaults: level}, Evaluator: evaluator,
		Metrics: uncounted{}, NamespaceGetter: matchAll{},
	}
	if err := plugin.CompleteConfiguration(); err != nil {
		t.Fatal(err)
	}
	yes := true
	container := corev1.Container{Name: "c", SecurityContext: &corev1.SecurityContext{Privileged: &yes}}
	response := plugin.Validate(t.Context(), &podsecurityapi.AttributesRecord{
		Name: "p", Namespace: "ns", Resource: corev1.SchemeGroupVersion.WithResource("pods"), Operation: admissionv1.Create,
		Object: &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{container}}},
	})
	if response.Allowed {
		t.Fatal("the pod is allowed")
	}
	return &apierrors.StatusError{ErrStatus: *response.Result}
}

func authorizers() map[string]answered {
	attributes := authorizer.AttributesRecord{
		User: &apiuser.DefaultInfo{Name: user}, Verb: "create", Namespace: "ns", Resource: "configmaps", APIVersion: "v1", ResourceRequest: true,
	}
	impersonated := attributes
	impersonated.User, impersonated.Verb = &apiuser.DefaultInfo{Name: `a "b" <c>`}, "impersonate"
	impersonated.Resource, impersonated.Name = "serviceaccounts", "default"
	key := impersonated
	key.APIGroup, key.Resource, key.Subresource = "authentication.k8s.io", "userextras", dryrun.ExtraKey
	key.Namespace, key.Name = "", rehearsal
	constrained := impersonated
	constrained.Verb = "impersonate-on:serviceaccount:create"
	return map[string]answered{
		"verb": {
			"it is not allowed", responsewriters.ForbiddenStatusError(attributes, ""), refused, dryrun.KindRBAC, "RBAC", false, "",
		},
		"verb, with reason": {
			"it is not allowed", responsewriters.ForbiddenStatusError(attributes, "RBAC: not found"),
			refused, dryrun.KindRBAC, "RBAC", false, "",
		},
		"impersonation": {
			"the identity was not asked", responsewriters.ForbiddenStatusError(impersonated, ""),
			dryrun.NotAsked, dryrun.KindRBAC, "RBAC", false, "",
		},
		"ID": {
			"the identity was not asked", responsewriters.ForbiddenStatusError(key, ""), dryrun.NotAsked, dryrun.KindRBAC, "RBAC", false, "",
		},
		"constrained": {
			"the identity was not asked", responsewriters.ForbiddenStatusError(constrained, ""),
			dryrun.NotAsked, dryrun.KindRBAC, "RBAC", false, "",
		},
		"escalation": {
			"the role has more rights than the user", forbid(
				"user %q (groups=%q) is attempting to grant RBAC permissions not currently held:\n%s", user, []string{"g"}, "{APIGroups:[\"\"]}"),
			refused, dryrun.KindRBAC, "RBAC", false, "not currently held",
		},
	}
}

const byServer = "the API server"

func apiServer() map[string]answered {
	resource, none := schema.GroupResource{Group: "apps", Resource: "deployments"}, schema.GroupResource{}
	immutable := field.Invalid(field.NewPath("spec", "selector"), "x", "field is immutable")
	return map[string]answered{
		"accepted": {"no error", nil, accepted, "", "", false, ""},
		"immutable": {
			"validation", apierrors.NewInvalid(schema.GroupKind{Group: "apps", Kind: "Deployment"}, "d", field.ErrorList{immutable}),
			refused, dryrun.KindAPIServer, byServer, false, "",
		},
		"bad request": {
			"it is not read", apierrors.NewBadRequest(`strict decoding error: unknown field "x"`),
			refused, dryrun.KindAPIServer, byServer, false, "",
		},
		"too large": {
			"it is not read", apierrors.NewRequestEntityTooLargeError("limit is 3145728"), refused, dryrun.KindAPIServer, byServer, false, "",
		},
		"method": {
			"it is not served", apierrors.NewMethodNotSupported(resource, "create"), refused, dryrun.KindAPIServer, byServer, false, "",
		},
		"no namespace": {
			"it may be created before", apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, "ns"),
			dryrun.NotAsked, dryrun.KindAPIServer, byServer, false, "",
		},
		"no object": {
			"there is nothing to update", apierrors.NewNotFound(resource, "d"), dryrun.NotAsked, dryrun.KindAPIServer, byServer, false, "",
		},
		"no kind": {
			"it is not served", &meta.NoKindMatchError{GroupKind: schema.GroupKind{Kind: "X"}},
			dryrun.NotAsked, dryrun.KindAPIServer, byServer, false, "",
		},
		"exists": {
			"it is read again", apierrors.NewAlreadyExists(resource, "d"), dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"conflict": {
			"it is read again", apierrors.NewConflict(resource, "d", errors.New("it was modified")),
			dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"busy": {
			"it is asked again", apierrors.NewTooManyRequests("busy", 1), dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"timeout": {
			"it is asked again", apierrors.NewTimeoutError("slow", 1), dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"server timeout": {
			"it is asked again", apierrors.NewServerTimeout(resource, "create", 1), dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"unavailable": {
			"it is asked again", apierrors.NewServiceUnavailable("starting"), dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"internal": {
			"it is not about the write", apierrors.NewInternalError(errors.New("broken")),
			dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"not authenticated": {
			"the credentials have expired", apierrors.NewUnauthorized("Unauthorized"),
			dryrun.NotAsked, dryrun.KindAPIServer, byServer, false, "",
		},
		"etcd": {
			"an error without a reason",
			&apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: leader changed"}},
			dryrun.NotAsked, dryrun.KindAPIServer, byServer, true, "",
		},
		"wrapped": {
			"it is found", fmt.Errorf("ConfigMap c: %w", denied("no", 403)),
			refused, dryrun.KindWebhook, webhook, false, `admission webhook "x.example.com"`,
		},
		"long": {
			"it is bounded", denied(strings.Repeat("a\n\x1b[31m", 1000), 403), refused, dryrun.KindWebhook, webhook, false, "request: a ",
		},
		"page of a proxy": {
			"it is not of the API server", apierrors.NewGenericServerResponse(403, "put", none, "", "<html>", 0, true),
			dryrun.NotAsked, dryrun.KindConnection, byConnection, false, "",
		},
		"page not found": {
			"it is not of the API server", apierrors.NewGenericServerResponse(404, "put", none, "", "404 page not found", 0, true),
			dryrun.NotAsked, dryrun.KindConnection, byConnection, false, "",
		},
		"page, no backend": {
			"it is asked again", apierrors.NewGenericServerResponse(503, "put", none, "", "<html>", 0, true),
			dryrun.NotAsked, dryrun.KindConnection, byConnection, true, "",
		},
	}
}

// spoofed are messages with the text of another reviewer in them.
func spoofed(t *testing.T) map[string]answered {
	t.Helper()
	const bound = `ValidatingAdmissionPolicy "p.example.com" with binding "b.example.com"`
	named := func(name string, err error) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, name, err)
	}
	details := &metav1.StatusDetails{Kind: "admission webhook", Name: hook}
	forged := webhookerrors.ToStatusErr(hook, &metav1.Status{Message: "no", Details: details})
	notDry := `admission webhook "other.example.com" does not support dry run`
	return map[string]answered{
		"webhook for another": {
			"it is behind its own", denied(`admission webhook "other.example.com" denied the request: no`, 403),
			refused, dryrun.KindWebhook, webhook, false, "",
		},
		"webhook for no dry run": {"it is behind its own", denied(notDry, 400), refused, dryrun.KindWebhook, webhook, false, ""},
		"webhook for a failure": {
			"it is behind its own", denied(`Internal error occurred: failed calling webhook "other.example.com": x`, 500),
			refused, dryrun.KindWebhook, webhook, true, "",
		},
		"webhook for a quota": {
			"it is behind its own", denied(`pods "p" is forbidden: exceeded quota: q, requested: x`, 403),
			refused, dryrun.KindWebhook, webhook, false, "",
		},
		"webhook for a conflict": {
			"it is behind its own", denied("Operation cannot be fulfilled on x", 409), refused, dryrun.KindWebhook, webhook, false, "",
		},
		"webhook with details": {"they are its own", forged, refused, dryrun.KindWebhook, webhook, false, ""},
		"webhook in lines": {
			"it is behind its own", denied("no\nadmission webhook \"other.example.com\" denied the request: no", 403),
			refused, dryrun.KindWebhook, webhook, false, "no admission",
		},
		"failed webhook": {"the text of its server", uncalled(errors.New(notDry)), refused, dryrun.KindWebhook, webhook, true, ""},
		"policy for a webhook": {
			"it is behind its own", validated(t, `admission webhook "x.example.com" denied the request: no`, "", nil),
			refused, dryrun.KindValidatingPolicy, bound, false, "",
		},
		"policy for impersonation": {
			"it is behind its own", validated(t, `User "x" cannot impersonate resource "users"`, "", nil),
			refused, dryrun.KindValidatingPolicy, bound, false, "",
		},
		"policy in lines": {
			"it is behind its own", validated(t, "no\nexceeded quota: q, requested: x", "", nil),
			refused, dryrun.KindValidatingPolicy, bound, false, "no exceeded",
		},
		"name": {
			"users choose names", named(`c" is forbidden: exceeded quota: q, requested: `, errors.New("no")),
			refused, dryrun.KindAPIServer, byServer, false, "",
		},
		"name for a policy": {
			"users choose names",
			named(`x" is forbidden: ValidatingAdmissionPolicy 'p' denied request: `, errors.New("exceeded quota: q, requested: x")),
			refused, dryrun.KindQuota, `quota "q"`, false, "",
		},
		"value": {
			"users choose values",
			apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "x", field.ErrorList{field.Invalid(field.NewPath("spec"), notDry, notDry)}),
			refused, dryrun.KindAPIServer, byServer, false, "",
		},
		"details of another": {
			"the message does not begin as the API server's", &apierrors.StatusError{ErrStatus: metav1.Status{
				Status: metav1.StatusFailure, Message: `pods "p" is forbidden: exceeded quota: q, requested: x`,
				Reason: metav1.StatusReasonForbidden, Code: 403,
				Details: &metav1.StatusDetails{Kind: "pods", Name: "other"},
			}}, refused, dryrun.KindAPIServer, byServer, false, "",
		},
	}
}

const byConnection = "the connection to the API server"

func connections() map[string]answered {
	refusedConnection := &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	get := func(err error) error { return &url.Error{Op: "Put", URL: "https://api.example.com", Err: err} }
	return map[string]answered{
		"connection refused": {"it is asked again", get(refusedConnection), dryrun.NotAsked, dryrun.KindConnection, byConnection, true, ""},
		"deadline": {
			"it is asked again", get(context.DeadlineExceeded), dryrun.NotAsked, dryrun.KindConnection, byConnection, true, "",
		},
		"canceled": {"the caller has ended it", get(context.Canceled), dryrun.NotAsked, dryrun.KindConnection, byConnection, false, ""},
		"canceled dial": {
			"the caller has ended it", get(&net.OpError{Op: "dial", Err: context.Canceled}),
			dryrun.NotAsked, dryrun.KindConnection, byConnection, false, "",
		},
		"not a dry run": {
			"it was not sent", get(fmt.Errorf("x: %w", dryrun.ErrNotDryRun)),
			dryrun.NotAsked, dryrun.KindRehearsal, "the rehearsal", false, "",
		},
		"exhausted": {"it was not sent", get(dryrun.ErrExhausted), dryrun.NotAsked, dryrun.KindRehearsal, "the rehearsal", false, ""},
		"unknown":   {"it is not understood", errors.New("accepted"), dryrun.NotAsked, dryrun.KindConnection, byConnection, false, ""},
		"no object": {
			"the response is not understood", runtime.NewMissingKindErr("{}"), dryrun.NotAsked, dryrun.KindConnection, byConnection, false, "",
		},
	}
}

// uncounted has no metrics.
type uncounted struct{ metrics.Recorder }

func (uncounted) RecordEvaluation(metrics.Decision, podsecurityapi.LevelVersion, metrics.Mode, podsecurityapi.Attributes) {
}
