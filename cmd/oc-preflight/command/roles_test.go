package command_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"github.com/openshift/update-preflight/test/program"
)

// newRefusing starts an API server that refuses every request of a user, and returns its URL.
func newRefusing(t *testing.T, user string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		var answer any
		switch {
		case r.URL.Path == "/version":
			answer = version.Info{Major: "1", Minor: "31", GitVersion: "v1.31.0"}
		case user != "system:anonymous" && strings.HasSuffix(r.URL.Path, "/selfsubjectreviews"):
			answer = authenticationv1.SelfSubjectReview{
				TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "SelfSubjectReview"},
				Status:   authenticationv1.SelfSubjectReviewStatus{UserInfo: authenticationv1.UserInfo{Username: user}},
			}
		case user != "system:anonymous" && strings.HasSuffix(r.URL.Path, "/selfsubjectaccessreviews"):
			answer = authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{
				APIVersion: "authorization.k8s.io/v1",
				Kind:       "SelfSubjectAccessReview",
			}}
		default:
			w.WriteHeader(http.StatusForbidden)
			answer = metav1.Status{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Reason: metav1.StatusReasonForbidden,
				Code: http.StatusForbidden, Message: fmt.Sprintf(`%s is forbidden: User %q cannot do it`, r.URL.Path, user),
			}
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// writeKubeconfig writes a kubeconfig for an API server, with the contexts one and other.
func writeKubeconfig(t *testing.T, server string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	content := `{apiVersion: v1, kind: Config, current-context: one, clusters: [{name: c, cluster: {server: "` + server + `"}}],
 contexts: [{name: one, context: {cluster: c}}, {name: other, context: {cluster: c}}]}
`
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The roles for a user who lacks permissions are printed bound to that user, for an administrator of the same
// cluster: with none of the flags by which the user reaches it.
func TestRolesForTheUser(t *testing.T) {
	const account, secret = "system:serviceaccount:ci:verifier", "abc123"
	digest := "quay.io/release@sha256:" + strings.Repeat("a", 64)
	for name, tc := range map[string]struct {
		reason, user string
		args         []string
		want         string // behind the name of the program
	}{
		"User": {
			reason: "a user by name", user: "alice", args: []string{"run", "--to", "4.19.3"},
			want: "auth run --to 4.19.3 --bind user:alice",
		},
		"Account": {
			reason: "a ServiceAccount is no user of a binding", user: account, args: []string{"targets"},
			want: "auth targets --bind serviceaccount:ci:verifier",
		},
		"Colon": {
			reason: "the name of a user may have colons", user: "kube:admin", args: []string{"status"},
			want: "auth status --bind user:kube:admin",
		},
		"Quoted": {
			reason: "the name is one word of the shell", user: "Jo Doe", args: []string{"plan", "--to-minor", "4.19"},
			want: "auth plan --bind 'user:Jo Doe'",
		},
		"Image": {
			reason: "the roles are for the release", user: "alice", args: []string{"run", "--to-image", digest, "--images", "pull"},
			want: "auth run --to-image " + digest + " --images pull --bind user:alice",
		},
		"Token": {
			reason: "the credentials are those of the user", user: "alice", args: []string{"history", "--token", secret},
			want: "auth history --bind user:alice",
		},
		"Context": {
			reason: "the context is that of the user", user: "alice", args: []string{"run", "--to", "4.19.3", "--context", "other"},
			want: "auth run --to 4.19.3 --bind user:alice",
		},
		"As": {
			reason: "an administrator needs no impersonation", user: "bob",
			args: []string{"cleanup", "--all", "--as", "bob", "--as-group", "team"}, want: "auth cleanup --bind user:bob",
		},
		"Auth": {
			reason: "the roles for a release need those of its checks", user: "alice",
			args: []string{"auth", "run", "--to", "4.19.3", "--bind", "user:alice"}, want: "auth checks --bind user:alice",
		},
		"Attach": {
			reason: "to continue a run needs the same as to start it", user: "alice", args: []string{"attach"},
			want: "auth run --bind user:alice",
		},
		"Unknown":   {reason: "an unprintable name is bound to nothing", user: "al\x1bice", args: []string{"status"}, want: "auth status"},
		"Anonymous": {reason: "what is bound to no user is bound to all users", user: "system:anonymous", args: []string{"status"}},
	} {
		t.Run(name, func(t *testing.T) {
			server := newRefusing(t, tc.user)
			got := program.Call(t, append(tc.args, "--kubeconfig", writeKubeconfig(t, server))...)
			want := "error: have an administrator of the cluster " + server + " apply the roles that this prints: oc preflight " + tc.want + "; "
			switch name {
			case "Unknown":
				want = strings.Replace(want, "prints:", "prints, bound with --bind to the user:", 1)
			case "Anonymous":
				want = `error: the API server was sent no credentials; log in with "oc login": `
			}
			if got.Code != 1 || !strings.Contains(got.Stderr, want) || strings.Contains(got.Stderr, secret) {
				t.Errorf("%s: exit code %d\n%s\nwant\n%s", tc.reason, got.Code, got.Stderr, want)
			}
		})
	}
}
