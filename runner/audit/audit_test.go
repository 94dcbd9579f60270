package audit_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/openshift/update-preflight/collector/finding"
	"github.com/openshift/update-preflight/collector/gap"
	preflight "github.com/openshift/update-preflight/preflight-sdk"
	"github.com/openshift/update-preflight/runner/audit"
	"github.com/openshift/update-preflight/runner/internal/releasetest"
	"github.com/openshift/update-preflight/runner/launch/accountcopy"
	"github.com/openshift/update-preflight/runner/launch/credential"
	"github.com/openshift/update-preflight/runner/launch/inventory"
)

// rbac is an API server with the permissions of the group of all ServiceAccounts. It answers the requests of an
// audit only; those on a real API server are tested in test/e2e.
type rbac struct {
	// group are the rules of the group.
	group []rbacv1.PolicyRule
	// refused is the status of all requests; 0 for answers.
	refused int
}

func (r rbac) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	answer := func(status int, content any) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(content)
	}
	const group = "/apis/rbac.authorization.k8s.io/v1/"
	switch path := request.URL.Path; {
	case r.refused != 0:
		answer(r.refused, metav1.Status{
			Status: metav1.StatusFailure, Code: int32(r.refused), Reason: metav1.StatusReasonForbidden,
			Message: "forbidden",
		})
	case path == "/api":
		answer(http.StatusOK, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"}})
	case path == "/api/v1":
		answer(http.StatusOK, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList"}, GroupVersion: "v1",
			APIResources: []metav1.APIResource{{Name: "configmaps", Namespaced: true, Kind: "ConfigMap", Verbs: metav1.Verbs{"create", "get"}}},
		})
	case path == "/apis":
		answer(http.StatusOK, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList"}})
	case path == group+"clusterrolebindings":
		answer(http.StatusOK, rbacv1.ClusterRoleBindingList{Items: []rbacv1.ClusterRoleBinding{{
			ObjectMeta: metav1.ObjectMeta{Name: "all"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "all"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: "system:serviceaccounts"}},
		}}})
	case path == group+"clusterroles/all":
		answer(http.StatusOK, rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "all"}, Rules: r.group})
	default: // empty lists, and reviews that allow nothing
		answer(http.StatusOK, struct{}{})
	}
}

// auditOf audits accounts on an API server with these permissions.
func auditOf(t *testing.T, server rbac, accounts ...accountcopy.Account) audit.Audit {
	t.Helper()
	listening := httptest.NewServer(server)
	t.Cleanup(listening.Close)
	client, err := kubernetes.NewForConfig(&rest.Config{Host: listening.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	return audit.New(t.Context(), client, accounts)
}

// guards are the findings about a guard in force and about one that is not.
func guards() (inForce, missing finding.Finding) {
	inForce = finding.Pass(gap.Proven("the test"), finding.ReportedReason("ReadOnly"), "in force")
	return inForce, finding.Warn(finding.ReportedReason("NoReadOnlyGuard"), "the user may not create one")
}

// reported describes the findings of an audit by name.
func reported(t *testing.T, a audit.Audit) map[string]string {
	t.Helper()
	findings, err := a.Source().Collect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range findings {
		all[f.Name] = fmt.Sprintf("%s(%s)", f.Outcome, f.Reason)
		if f.Outcome != preflight.Pass && f.Remediation == "" {
			t.Errorf("%s has no remedy", f.Name)
		}
	}
	return all
}

// Where no guard is in force, each write access bars a check, and so does access that is unknown.
func TestAttacksByWritesWithoutAGuard(t *testing.T) {
	const groups, own = "ReadOnlyAccess-zoo", "ReadOnlyAccess-zoo.keeper"
	write := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}}
	read := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get"}}}
	keeper := func(change func(*accountcopy.Account)) accountcopy.Account {
		account := accountcopy.Account{
			Namespace: "zoo", Name: "keeper-0123456789", Author: "keeper", Checks: []string{"Zoo.A", "Zoo.B"},
			Rules: read,
		}
		change(&account)
		return account
	}
	plain := keeper(func(*accountcopy.Account) {})
	both := func(causes ...string) map[string][]string {
		return map[string][]string{"Zoo.A": causes, "Zoo.B": causes}
	}
	for name, tc := range map[string]struct {
		reason  string
		server  rbac
		account accountcopy.Account
		// guarded and unguarded are the causes by check, with a guard in force and without.
		guarded, unguarded map[string][]string
		// finding is what is reported without a guard.
		finding map[string]string
	}{
		"Reads": {
			reason: "nothing may write", server: rbac{group: read}, account: plain,
			finding: map[string]string{groups: "Pass(ReadOnly)", own: "Pass(ReadOnly)"},
		},
		"GroupWrites": {
			reason: "a role is bound to all ServiceAccounts", server: rbac{group: write}, account: plain, unguarded: both(groups),
			finding: map[string]string{groups: "Unknown(UnguardedAccess)", own: "Pass(ReadOnly)"},
		},
		"AccountWrites": {
			reason: "the ClusterRole view of the cluster was changed", server: rbac{group: read},
			account: keeper(func(a *accountcopy.Account) { a.Rules = write }), unguarded: both(own),
			finding: map[string]string{groups: "Pass(ReadOnly)", own: "Unknown(UnguardedAccess)"},
		},
		"Both": {
			reason: "each has to be accepted", server: rbac{group: write}, account: keeper(func(a *accountcopy.Account) { a.Rules = write }),
			unguarded: both(groups, own),
			finding:   map[string]string{groups: "Unknown(UnguardedAccess)", own: "Unknown(UnguardedAccess)"},
		},
		"NotAudited": {
			reason: "unknown what the groups may do", server: rbac{refused: http.StatusForbidden}, account: plain, unguarded: both("ReadOnlyAccess"),
			finding: map[string]string{"ReadOnlyAccess": "Unknown(NotAudited)", own: "Pass(ReadOnly)"},
		},
		"RoleNotRead": {
			reason: "unknown what the roles of the cluster allow", server: rbac{group: read},
			account: keeper(func(a *accountcopy.Account) { a.Unread = errors.New("forbidden") }), unguarded: both(own),
			finding: map[string]string{groups: "Pass(ReadOnly)", own: "Unknown(NotAudited)"},
		},
		"CopyNotRead": {
			reason: "the copy has no permissions", server: rbac{group: read},
			account: keeper(func(a *accountcopy.Account) { a.Unread, a.Copied, a.Rules = errors.New("forbidden"), true, nil }),
			finding: map[string]string{groups: "Pass(ReadOnly)", own: "Warn(NotAudited)"},
		},
		"Impersonates": {
			reason: "no guard can deny it", server: rbac{group: read}, guarded: both(own), unguarded: both(own),
			account: keeper(func(a *accountcopy.Account) {
				a.Rules = []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"users"}, Verbs: []string{"impersonate"}}}
			}),
			finding: map[string]string{groups: "Pass(ReadOnly)", own: "Unknown(UnguardedAccess)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			inForce, missing := guards()
			audited := auditOf(t, tc.server, tc.account)
			for of, want := range map[*finding.Finding]map[string][]string{&inForce: tc.guarded, &missing: tc.unguarded} {
				if want == nil {
					want = map[string][]string{}
				}
				if diff := cmp.Diff(want, audited.Under(*of).Barred()); diff != "" {
					t.Errorf("%s: with a guard of %s (-want, +got):\n%s", tc.reason, of.Outcome, diff)
				}
			}
			if diff := cmp.Diff(tc.finding, reported(t, audited.Under(missing))); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// Each Secret that a check reads is named, and one of unknown type bars the checks that read it.
func TestAttacksByUnknownSecrets(t *testing.T) {
	const own = "ReadOnlyAccess-zoo.keeper"
	forbidden := errors.New(`secrets "food" is forbidden`)
	secret := func(review credential.Review, checks ...string) accountcopy.ReadSecret {
		return accountcopy.ReadSecret{Reference: inventory.Refer("Secret", "zoo", "food"), Review: review, Checks: checks}
	}
	write := []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}}}
	for name, tc := range map[string]struct {
		reason  string
		account accountcopy.Account
		barred  map[string][]string
		// finding is what is reported, and message a part of it.
		finding, message string
	}{
		"None": {reason: "no Secret", finding: "Pass(ReadOnly)", message: "is a temporary copy"},
		"Ordinary": {reason: "it may have another credential", account: accountcopy.Account{Secrets: []accountcopy.ReadSecret{secret(
			credential.Review{}, "Zoo.A")}}, finding: "Warn(ReadsSecrets)", message: "without a known credential"},
		"OfCopy": {
			reason: "a role that was copied names it", account: accountcopy.Account{
				Copied:  true,
				Secrets: []accountcopy.ReadSecret{secret(credential.Review{}, "Zoo.A", "Zoo.B")},
			}, finding: "Warn(ReadsSecrets)",
			message: "without a known credential",
		},
		"UnknownContent": {reason: "it is no token Secret", account: accountcopy.Account{Secrets: []accountcopy.ReadSecret{secret(
			credential.Review{Content: forbidden}, "Zoo.A")}}, finding: "Warn(ReadsSecrets)", message: "of unknown content: " + forbidden.Error()},
		"UnknownType": {
			reason: "it may be a token Secret, of this check only", account: accountcopy.Account{Secrets: []accountcopy.ReadSecret{secret(
				credential.Review{Type: forbidden, Content: forbidden}, "Zoo.A")}},
			barred: map[string][]string{"Zoo.A": {own}}, finding: "Unknown(UnknownSecret)", message: "of unknown type: " + forbidden.Error(),
		},
		"UnknownConfigMap": {
			reason: "it may have a token", account: accountcopy.Account{Secrets: []accountcopy.ReadSecret{
				{
					Reference: inventory.Refer("ConfigMap", "zoo", "food"), Review: credential.Review{Type: forbidden, Content: forbidden},
					Checks: []string{"Zoo.A"},
				},
			}},
			barred: map[string][]string{"Zoo.A": {own}}, finding: "Unknown(UnknownSecret)",
			message: `ConfigMap "food" in namespace "zoo" (of unknown content: ` + forbidden.Error(),
		},
		"UnknownTypeBesideWrites": {
			reason: "neither hides the other", account: accountcopy.Account{
				Rules:   write,
				Secrets: []accountcopy.ReadSecret{secret(credential.Review{Type: forbidden}, "Zoo.B")},
			},
			barred: map[string][]string{"Zoo.B": {own}}, finding: "Unknown(UnknownSecret)", message: "may create configmaps",
		},
		"OrdinaryBesideWrites": {
			reason: "neither hides the other", account: accountcopy.Account{
				Rules:   write,
				Secrets: []accountcopy.ReadSecret{secret(credential.Review{}, "Zoo.B")},
			},
			finding: "Warn(MayWrite)", message: "without a known credential",
		},
	} {
		t.Run(name, func(t *testing.T) {
			account := tc.account
			account.Namespace, account.Name, account.Author, account.Checks = "zoo", "keeper-0123456789", "keeper", []string{"Zoo.A", "Zoo.B"}
			inForce, _ := guards()
			audited := auditOf(t, rbac{}, account).Under(inForce)
			if tc.barred == nil {
				tc.barred = map[string][]string{}
			}
			if diff := cmp.Diff(tc.barred, audited.Barred()); diff != "" {
				t.Errorf("%s (-want, +got):\n%s", tc.reason, diff)
			}
			findings, err := audited.Source().Collect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range findings {
				if got := fmt.Sprintf("%s(%s)", f.Outcome, f.Reason); f.Name == own && (got != tc.finding || !strings.Contains(f.Message, tc.message)) {
					t.Errorf("%s: %s: %s; want %s with %q", tc.reason, got, f.Message, tc.finding, tc.message)
				}
				if f.Name == own && len(account.Secrets) > 0 && (len(f.Objects) != 2 || !strings.Contains(f.Message, account.Secrets[0].String())) {
					t.Errorf("%s does not name the Secret: %+v", f.Message, f.Objects)
				}
			}
		})
	}
}

// A check that may not run names each finding that has to be accepted.
func TestNotRun(t *testing.T) {
	f := audit.NotRun("Zoo.A", []string{"ReadOnlyAccess-zoo", "ReadOnlyAccess-zoo.keeper"})
	want := []finding.Action{finding.Accept("ReadOnlyAccess-zoo"), finding.Accept("ReadOnlyAccess-zoo.keeper")}
	if diff := cmp.Diff(want, f.Actions); diff != "" || f.Outcome != preflight.Unknown {
		t.Errorf("%+v (-want, +got):\n%s", f, diff)
	}
}

// A Secret that changed makes the finding about its account Unknown.
func TestChanged(t *testing.T) {
	plan := releasetest.Plan(releasetest.Run(), releasetest.Release(releasetest.Job(func(job *batchv1.Job) {
		job.Spec.Template.Spec.Volumes = []corev1.Volume{{
			Name:         "food",
			VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "food"}},
		}}
	})))
	food := inventory.Refer("Secret", plan.Checks[0].Job.Namespace, "food")
	if found := audit.Changed(plan, nil); len(found) > 0 {
		t.Errorf("%+v, want none", found)
	}
	found := audit.Changed(plan, map[inventory.Reference]string{food: "has a bootstrap token now"})
	if len(found) != 1 || !found[0].Blocks || found[0].Reason != "SecretChanged" ||
		!strings.Contains(found[0].Message, food.String()+" has a bootstrap token now") {
		t.Errorf("%+v, want one that blocks and names the Secret", found)
	}
}
