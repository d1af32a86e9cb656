package keelson

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// Issuer is the issuer of service account tokens that the tests expect.
const Issuer = "https://foo.bar.example.com"

// Authority is a certificate authority with its key.
type Authority struct {
	Cert *x509.Certificate
	Key  *rsa.PrivateKey
}

// NewAuthority makes one.
func NewAuthority(name string) (Authority, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return Authority{}, err
	}
	certificate, err := cert.NewSelfSignedCACert(cert.Config{CommonName: name}, key)
	return Authority{certificate, key}, err
}

// Write puts the certificate into a file and returns its path.
func (a Authority) Write(folder, name string) (string, error) {
	path := filepath.Join(folder, name)
	return path, os.WriteFile(path, pemOf("CERTIFICATE", a.Cert.Raw), 0o644)
}

func pemOf(kind string, bytes []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: bytes})
}

// Client signs a client certificate and writes it and its key.
func (a Authority) Client(folder, commonName string) (certPath, keyPath string, err error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", "", err
	}
	template := x509.Certificate{
		Subject:      pkix.Name{CommonName: commonName},
		SerialNumber: big.NewInt(time.Now().UnixNano()),
		NotBefore:    a.Cert.NotBefore,
		NotAfter:     time.Now().Add(24 * time.Hour),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	signed, err := x509.CreateCertificate(rand.Reader, &template, a.Cert, signer.Public(), a.Key)
	if err != nil {
		return "", "", err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return "", "", err
	}
	certPath, keyPath = filepath.Join(folder, commonName+"-crt.crt"), filepath.Join(folder, commonName+"-crt.key")
	if err := os.WriteFile(certPath, pemOf("CERTIFICATE", signed), 0o644); err != nil {
		return "", "", err
	}
	return certPath, keyPath, os.WriteFile(keyPath, key, 0o600)
}

// ServiceAccountFlags writes `key` (PEM) and returns the flags of service account tokens signed by it.
func ServiceAccountFlags(folder, key string) ([]string, error) {
	path := filepath.Join(folder, "service-account.key")
	return []string{"--service-account-signing-key-file=" + path, "--service-account-key-file=" + path, "--service-account-issuer=" + Issuer},
		os.WriteFile(path, []byte(key), 0o600)
}

// ServiceAccountKey makes a key and returns the flags of service account tokens signed by it.
func ServiceAccountKey(folder string) ([]string, error) {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	key, err := keyutil.MarshalPrivateKeyToPEM(signer)
	if err != nil {
		return nil, err
	}
	return ServiceAccountFlags(folder, string(key))
}
