<?php

declare(strict_types=1);

namespace Dq\Laravel;

use Illuminate\Bus\Queueable;

// Two traits of one class cannot both have a method, so `onGroup` is here only where Laravel does not have it.
// phpcs:disable PSR1.Classes.ClassDeclaration.MultipleClasses
if (method_exists(Queueable::class, 'onGroup')) {
    /** What a job asks of dq: `use Queueable, Dq\Laravel\Options;` */
    trait Options
    {
        use JobOptions;
    }
} else {
    /** What a job asks of dq: `use Queueable, Dq\Laravel\Options;` */
    trait Options
    {
        use JobOptions;
        use GroupOption;
    }
}
