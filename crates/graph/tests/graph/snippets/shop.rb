require 'json'
require_relative '../lib/foo'
# Doc
module M
  class A < Base::X
    include Comparable
    LIMIT = 3
    attr_accessor :name, :age
    def initialize(a, b = 1)
      @a = a
      @svc = Svc.new
    end
    def run(x)
      helper(x)
      @svc.go
      self.other
      y = Foo.new
      y.bar { |z| z.w }
    end
    def self.make; new(1); end
    alias old run
  end
end
describe A do
  it "works" do
    A.make.run(1)
  end
end
