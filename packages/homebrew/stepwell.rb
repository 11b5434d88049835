# The formula of a tap. `scripts/package.sh` writes version and digests of a release into the marked places.
class Stepwell < Formula
  desc "Durable workflow engine in one binary"
  homepage "https://stepwell.example"
  version "@VERSION@"
  license any_of: ["MIT", "Apache-2.0"]

  on_macos do
    on_arm do
      url "https://stepwell.example/releases/@VERSION@/stepwell-darwin-arm64.tar.gz"
      sha256 "@SHA256_darwin-arm64@"
    end
    on_intel do
      url "https://stepwell.example/releases/@VERSION@/stepwell-darwin-x64.tar.gz"
      sha256 "@SHA256_darwin-x64@"
    end
  end
  on_linux do
    on_arm do
      url "https://stepwell.example/releases/@VERSION@/stepwell-linux-arm64.tar.gz"
      sha256 "@SHA256_linux-arm64@"
    end
    on_intel do
      url "https://stepwell.example/releases/@VERSION@/stepwell-linux-x64.tar.gz"
      sha256 "@SHA256_linux-x64@"
    end
  end

  def install
    bin.install "stepwell"
    generate_completions_from_executable(bin/"stepwell", "completion")
    system bin/"stepwell", "man", man1
  end

  service do
    run [opt_bin/"stepwell", "serve", "--data", var/"stepwell"]
    keep_alive crashed: true
    log_path var/"log/stepwell.log"
    error_log_path var/"log/stepwell.log"
  end

  test do
    (testpath/"hello.yaml").write "name: hello\ntasks: {greet: {tool: echo, args: {text: hello}}}\n"
    system bin/"stepwell", "run", "hello.yaml", "--data", testpath/"data"
  end
end
