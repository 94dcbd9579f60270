package recordstore

import (
	"context"
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/openshift/update-preflight/collector/cluster/retry"
	"github.com/openshift/update-preflight/collector/gap"
	"github.com/openshift/update-preflight/runner/record"
	"github.com/openshift/update-preflight/runner/record/recordformat"
)

// KeySecret is the name of the Secret in Namespace that has the key of the records.
const KeySecret = "preflight-record-key"

const (
	secretKey = "key"
	keyLength = 32
)

// Key reads the key of the records. The error is one of the API server.
func (s *Store) Key(ctx context.Context) (recordformat.LoadedKey, error) {
	return readKey(ctx, s.client)
}

// readKey reads the key. The error is one of the API server; a missing Secret and a missing permission are none.
func readKey(ctx context.Context, client kubernetes.Interface) (recordformat.LoadedKey, error) {
	secret, err := retry.Get(ctx, func(ctx context.Context) (*corev1.Secret, error) {
		return client.CoreV1().Secrets(record.Namespace).Get(ctx, KeySecret, metav1.GetOptions{})
	})
	switch {
	case apierrors.IsNotFound(err):
		return recordformat.LoadedKey{Absent: true, Without: withoutKey(record.Unauthentic, "does not exist")}, nil
	case apierrors.IsForbidden(err):
		return recordformat.LoadedKey{Without: withoutKey(record.Unverifiable, "may not be read by this user")}, nil
	case gap.Is(err):
		return recordformat.LoadedKey{Without: withoutKey(record.Unverifiable, "is not in an archive")}, nil
	case err != nil:
		return recordformat.LoadedKey{}, fmt.Errorf("could not read the key of the records: %w", err)
	case len(secret.Data[secretKey]) != keyLength:
		return recordformat.LoadedKey{Without: withoutKey(record.Unauthentic, fmt.Sprintf("does not have %d bytes under %q", keyLength, secretKey))}, nil
	}
	return recordformat.LoadedKey{Key: secret.Data[secretKey]}, nil
}

func withoutKey(state record.Authenticity, what string) record.Authentication {
	return record.Authentication{State: state, Cause: fmt.Sprintf("secret %q in namespace %s, which has the key, %s", KeySecret, record.Namespace, what)}
}

// ensureKey reads the key, and creates it if it does not exist. Of concurrent
// processes, one creates it. A user who may not create it continues without.
func ensureKey(ctx context.Context, client kubernetes.Interface) (recordformat.LoadedKey, error) {
	var loaded recordformat.LoadedKey
	for range Conflicts {
		var err error
		if loaded, err = readKey(ctx, client); err != nil || !loaded.Absent {
			return loaded, err
		}
		switch err := createKey(ctx, client); {
		case apierrors.IsForbidden(err):
			return recordformat.LoadedKey{Without: withoutKey(record.Unverifiable, "does not exist and may not be created by this user")}, nil
		case err != nil && !apierrors.IsAlreadyExists(err):
			return recordformat.LoadedKey{}, fmt.Errorf("could not create the key of the records: %w", err)
		}
	}
	return loaded, nil
}

func createKey(ctx context.Context, client kubernetes.Interface) error {
	random := make([]byte, keyLength)
	_, _ = rand.Read(random) // it never returns an error
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: record.Namespace, Name: KeySecret},
		Type:       corev1.SecretTypeOpaque, Immutable: new(true), Data: map[string][]byte{secretKey: random},
	}
	return retry.Do(ctx, func(ctx context.Context) error {
		_, err := client.CoreV1().Secrets(record.Namespace).Create(ctx, secret, metav1.CreateOptions{})
		return err
	})
}
