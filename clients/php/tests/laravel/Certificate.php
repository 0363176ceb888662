<?php

declare(strict_types=1);

namespace Dq\Tests\Laravel;

/** A certificate for 127.0.0.1, which signs itself. */
final class Certificate
{
    public readonly string $certificate;
    public readonly string $key;

    public function __construct(string $directory)
    {
        $this->certificate = "{$directory}/certificate.pem";
        $this->key = "{$directory}/key.pem";
        $settings = "{$directory}/openssl.cnf";
        file_put_contents($settings, "[req]\ndistinguished_name = name\n[name]\n[v3]\nbasicConstraints = CA:TRUE\n"
            . "subjectAltName = IP:127.0.0.1\n");
        $options = ['config' => $settings, 'private_key_bits' => 2048, 'x509_extensions' => 'v3'];
        $key = openssl_pkey_new($options);
        $request = openssl_csr_new(['commonName' => '127.0.0.1'], $key, $options);
        openssl_x509_export_to_file(openssl_csr_sign($request, null, $key, 2, $options), $this->certificate);
        openssl_pkey_export_to_file($key, $this->key, null, $options);
    }
}
